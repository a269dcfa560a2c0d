package steps

import (
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
)

// Judgement is what the edit of a workload's template will do.
type Judgement struct {
	Change edit.Change
	// Reasons are why it is not made in place; none if it is.
	Reasons inplace.Reasons
	// Forbidden says that the mode does not let it be made otherwise.
	Forbidden bool
}

// NotAllowed is what refusals say of an edit that is Forbidden.
const NotAllowed = "which " + inplace.LabelUpdate + "=" + string(inplace.ModeInPlaceOnly) + " does not allow"

// Judge asks for the verdict on the whole workload where the edit itself forbids nothing.
func Judge(change edit.Change, mode inplace.Mode, verdict func() Verdict) Judgement {
	judged := Judgement{Change: change, Reasons: change.Reasons}
	switch {
	case !mode.Manages():
		judged.Reasons = inplace.Reasons{*mode.Reason()}
	case change.InPlace():
		judged.Reasons = verdict().Reasons
	}
	judged.Forbidden = !judged.InPlace() && mode == inplace.ModeInPlaceOnly
	return judged
}

// InPlace tells whether the edit is made in place.
func (j Judgement) InPlace() bool { return len(j.Reasons) == 0 }

// String is the judgement on one line, for the decision annotation and warnings.
func (j Judgement) String() string {
	if !j.InPlace() {
		return edit.RecreatePrefix + j.Reasons.String()
	}
	return j.Change.String()
}

// WarningPrefix begins the line where it is an admission warning.
const WarningPrefix = "stayput: "

// Forecast is a Judgement with what it means for pods.
type Forecast struct {
	Judgement
	// Pods are those that the workload wants.
	Pods int
	// AtATime is how many of them restart side by side, if any do.
	AtATime int
	// Borrowed is how many more there are for the time of the update, at most.
	Borrowed int
}
