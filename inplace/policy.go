package inplace

import (
	"fmt"
	"slices"
	"strings"
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
	// ModeRecreate, on a workload, overrides the namespace's label: updates are native.
	ModeRecreate Mode = "recreate"
	// ModeNotOptedIn is the mode of a StatefulSet in a labelled namespace without LabelStatefulSets: updates are native. It is no value of
	// LabelUpdate.
	ModeNotOptedIn Mode = "not-opted-in"
)

// Modes are the values that LabelUpdate may have on one kind of object.
type Modes []Mode

// NamespaceModes and WorkloadModes are the values that LabelUpdate may have on namespaces and on workloads.
var (
	NamespaceModes = Modes{ModeInPlace, ModeInPlaceOnly}
	WorkloadModes  = Modes{ModeInPlace, ModeInPlaceOnly, ModeRecreate}
)

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

// ModeOf returns the mode of a workload: that of its own label, or else that of its namespace's. In a namespace without a valid label it
// is ModeNone, whatever the workload's label is: the API server calls no webhook there, so nothing can be held. A value on the workload
// that does not parse counts as ModeRecreate: a native update is always correct.
func ModeOf(namespaceLabels, workloadLabels map[string]string) Mode {
	namespace := namespaceLabels[LabelUpdate]
	if !NamespaceModes.Has(namespace) {
		return ModeNone
	}
	workload, overrides := workloadLabels[LabelUpdate]
	switch {
	case !overrides:
		return Mode(namespace)
	case WorkloadModes.Has(workload):
		return Mode(workload)
	default:
		return ModeRecreate
	}
}

// IfOptedIn returns the mode of a workload of a kind that Stayput manages only on request.
func (m Mode) IfOptedIn(opted bool) Mode {
	if m.Manages() && !opted {
		return ModeNotOptedIn
	}
	return m
}

// Manages reports whether Stayput manages the workload's updates.
func (m Mode) Manages() bool { return m == ModeInPlace || m == ModeInPlaceOnly }

// NotManagedPrefix is the prefix of what Mode.Reason says.
const NotManagedPrefix = "not updated in place: "

// Reason returns the reason that Stayput does not manage workloads with this mode.
func (m Mode) Reason() *Reason {
	message := fmt.Sprintf("label %s is %q", LabelUpdate, m)
	if m == ModeNotOptedIn {
		message = fmt.Sprintf("StatefulSets need the label %s: %s, on themselves or on their namespace", LabelStatefulSets, StatefulSetsInPlace)
	}
	if m == ModeNone {
		message = "the namespace has no label " + LabelUpdate + ", or its value is not known"
	}
	return &Reason{Code: CodeMode, Message: NotManagedPrefix + message}
}
