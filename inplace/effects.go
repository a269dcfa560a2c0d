package inplace

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Effect is what a setting is for one workload.
type Effect struct {
	// Name is the setting without Stayput's prefix.
	Name string
	// Value is what counts: a value, or the default in words.
	Value string
	// From is where the value comes from: OfWorkload, OfNamespace or ByDefault.
	From string
	// InsteadOf is the value that does not count, and whose it is; empty if there is none.
	InsteadOf string
}

// Effects returns the settings in annotations that count on a workload of that kind, in the order of Annotations.
func (s Settings) Effects(kind string, workload map[string]string) []Effect {
	var all []Effect
	for _, setting := range Annotations {
		if len(setting.Kinds) == 0 || slices.Contains(setting.Kinds, kind) {
			all = append(all, setting.effect(s.namespace, workload))
		}
	}
	return all
}

func (s Setting) effect(namespace, workload map[string]string) Effect {
	e := Effect{Name: short(s.Key), Value: strings.ReplaceAll(s.Default, "`", ""), From: ByDefault}
	its, has := workload[s.Key]
	above, inherits := namespace[s.Key]
	locked := Locked(namespace, s.Key)
	if value, from := s.inForce(namespace, workload); from != ByDefault {
		e.Value, e.From = value, from
	}
	switch {
	case has && locked:
		e.InsteadOf = its + lockedOut
	case has && e.From != OfWorkload:
		e.InsteadOf = its + " of the workload, which is not valid"
	case inherits && e.From == OfWorkload:
		e.InsteadOf = above + " of the namespace"
	case inherits && e.From == ByDefault:
		e.InsteadOf = above + " of the namespace, which is not valid"
	}
	return e
}

// lockedOut follows a value of a workload that does not count.
const lockedOut = " of the workload, which the namespace locks"

// LabelEffects returns the same of the labels, for a workload of that kind.
func LabelEffects(kind string, namespace, workload metav1.Object) []Effect {
	kinds := Effect{Name: short(LabelKinds), Value: DefaultKinds, From: ByDefault}
	if value, has := namespace.GetLabels()[LabelKinds]; has {
		kinds.Value, kinds.From = value, OfNamespace
	}
	update := Effect{Name: short(LabelUpdate), Value: Native, From: ByDefault}
	above := namespace.GetLabels()[LabelUpdate]
	its, has := workload.GetLabels()[LabelUpdate]
	switch mode := ModeOf(kind, namespace, workload.GetLabels()); {
	case has && Locked(namespace.GetAnnotations(), LabelUpdate):
		update.Value, update.From, update.InsteadOf = cmp.Or(above, Native), OfNamespace, its+lockedOut
	case mode == ModeNone && has:
		update.InsteadOf = its + " of the workload, which counts only where the namespace has the label, too"
	case mode == ModeNotOptedIn:
		update.Value, update.InsteadOf = Native+": its kind is not among "+kinds.Name, above+" of the namespace"
	case has:
		update.Value, update.From, update.InsteadOf = string(mode), OfWorkload, above+" of the namespace"
	case mode != ModeNone:
		update.Value, update.From = above, OfNamespace
	}
	return []Effect{update, kinds}
}
