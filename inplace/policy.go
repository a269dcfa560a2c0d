package inplace

import (
	"fmt"
	"slices"
	"strings"
)

// Mode is how the template edits of a workload are carried out: the value of LabelUpdate.
type Mode string

// The modes. ModeNone is that of every workload outside labelled namespaces.
const (
	// ModeNone is no label: native.
	ModeNone Mode = ""
	// ModeInPlace updates in place what can be, and the rest natively.
	ModeInPlace Mode = "in-place"
	// ModeInPlaceOnly updates in place; edits that cannot be made so are rejected.
	ModeInPlaceOnly Mode = "in-place-only"
	// ModeRecreate, on a workload, opts out of what its namespace says: native.
	ModeRecreate Mode = "recreate"
)

// Modes are the values LabelUpdate may have on one kind of object.
type Modes []Mode

// NamespaceModes and WorkloadModes are the values LabelUpdate takes on namespaces and on workloads.
var (
	NamespaceModes = Modes{ModeInPlace, ModeInPlaceOnly}
	WorkloadModes  = Modes{ModeInPlace, ModeInPlaceOnly, ModeRecreate}
)

// Has reports whether the value is one of the modes.
func (m Modes) Has(value string) bool { return slices.Contains(m, Mode(value)) }

// String lists the modes for a message: "in-place, in-place-only".
func (m Modes) String() string {
	var names []string
	for _, mode := range m {
		names = append(names, string(mode))
	}
	return strings.Join(names, ", ")
}

// ModeOf returns the mode of a workload: what its own label says, else what its namespace's says. In a namespace without a
// valid label it is ModeNone whatever the workload says, since no webhook is called there and nothing could be held. A value
// on the workload that does not parse counts as ModeRecreate: native is always right.
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

// Manages reports whether Stayput has a say in the workload's updates.
func (m Mode) Manages() bool { return m == ModeInPlace || m == ModeInPlaceOnly }

// Reason says that the mode does not manage a workload.
func (m Mode) Reason() *Reason {
	message := fmt.Sprintf("label %s is %q", LabelUpdate, m)
	if m == ModeNone {
		message = "the namespace has no label " + LabelUpdate + ", or none that counts"
	}
	return &Reason{Code: CodeMode, Message: "not updated in place: " + message}
}
