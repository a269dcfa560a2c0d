package inplace

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Mode says how the template edits of a workload are carried out. It is the value of LabelUpdate.
type Mode string

// The modes. Every workload outside labelled namespaces has ModeNone.
const (
	// ModeNone is the absence of a label: updates are native.
	ModeNone Mode = ""
	// ModeInPlace makes edits in place where that is possible, and leaves the others to the native controller.
	ModeInPlace Mode = "in-place"
	// ModeInPlaceOnly makes edits in place, and rejects edits for which that is impossible.
	ModeInPlaceOnly Mode = "in-place-only"
	// ModeNative, on a workload, overrides the namespace's label: updates are native.
	ModeNative Mode = Native
	// ModeNotOptedIn is the mode of a workload without LabelUpdate whose kind is not among LabelKinds of its namespace: updates are native.
	// It is no value of LabelUpdate.
	ModeNotOptedIn Mode = "not-opted-in"
)

// Modes are several modes.
type Modes []Mode

// NamespaceModes are the values that LabelUpdate may have on namespaces. On workloads, ModeNative is another one.
var NamespaceModes = Modes{ModeInPlace, ModeInPlaceOnly}

// Has reports whether the value is one of the modes.
func (m Modes) Has(value string) bool { return slices.Contains(m, Mode(value)) }

// String returns the modes for a message: "in-place, in-place-only".
func (m Modes) String() string {
	var names []string
	for _, mode := range m {
		names = append(names, string(mode))
	}
	return strings.Join(names, ", ")
}

// ModeOf returns the mode of a workload of that kind: that of its own label, or else that of its namespace's. In a namespace without a
// valid label it is ModeNone, whatever the workload's label is: the API server calls no webhook there, so nothing can be held. A value on
// the workload that does not parse counts as ModeNative: a native update is always correct. Without a kind, it is the mode of a workload
// whose kind the namespace names. A label of a workload does not count where the namespace locks it.
func ModeOf(kind string, namespace metav1.Object, workloadLabels map[string]string) Mode {
	mode := namespace.GetLabels()[LabelUpdate]
	workload, overrides := workloadLabels[LabelUpdate]
	overrides = overrides && !Locked(namespace.GetAnnotations(), LabelUpdate)
	switch {
	case !NamespaceModes.Has(mode):
		return ModeNone
	case overrides && Mode(workload).Manages():
		return Mode(workload)
	case overrides:
		return ModeNative
	case kind != "" && !namesKind(namespace.GetLabels(), kind):
		return ModeNotOptedIn
	}
	return Mode(mode)
}

// namesKind reports whether the label of a namespace names the kind, such as Deployment.
func namesKind(namespaceLabels map[string]string, kind string) bool {
	value, has := namespaceLabels[LabelKinds]
	if !has {
		value = DefaultKinds
	}
	return slices.Contains(strings.Split(value, "."), strings.ToLower(kind)+"s")
}

// Manages reports whether Stayput manages the workload's updates.
func (m Mode) Manages() bool { return m == ModeInPlace || m == ModeInPlaceOnly }

// Reason returns the reason that Stayput does not manage workloads with this mode.
func (m Mode) Reason() *Reason {
	message := fmt.Sprintf("label %s is %q", LabelUpdate, m)
	if m == ModeNotOptedIn {
		message = fmt.Sprintf("it has no label %s itself, and label %s of the namespace does not name its kind", LabelUpdate, LabelKinds)
	}
	if m == ModeNone {
		message = "the namespace has no label " + LabelUpdate + ", or its value is not known"
	}
	return &Reason{Code: CodeMode, Message: "not updated in place: " + message}
}
