package controllerrevisions

import (
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/inplace/times"
)

// LeftToDo implements engine.Planner.
func (v *Planner) LeftToDo() bool { return v.Unfinished() }

// FallBack implements engine.Planner. Unless all pods have the update revision already, it labels the update revision. That ends the hold
// and nudges the native controller (updateHistory in pkg/controller/daemon/daemon_controller.go). A partially patched pod has no revision's
// hash, so the native controller replaces it.
func (v *Planner) FallBack(inplace.Reason) { v.fallBack() }

// fallBack removes the marks. The native controller does not retry by itself what was held. So as long as pods are left, it is nudged.
func (v *Planner) fallBack() {
	v.unmark()
	if v.UpdateRevision != nil && v.Unfinished() && v.Workload.GetDeletionTimestamp() == nil {
		v.set(v.UpdateRevision, func(m *marks) { m.fallback = times.Seconds(v.seen.Now) })
	}
	v.patchRevisions()
}

// Nudge returns the step that nudges the native controller in the middle of an update: that controller watches its ControllerRevisions
// (updateHistory in pkg/controller/daemon/daemon_controller.go). It returns no step if there is nothing to update.
func (v *Planner) Nudge() []steps.Step {
	if !v.Unfinished() || len(v.Owned) == 0 {
		return nil
	}
	first := v.Owned[0]
	return []steps.Step{steps.PatchRevision{
		Revision: first, Operations: patches.Guarded(first, revisions.Nudge(first.Labels, v.seen.Now)...), Why: revisions.WhyNudge,
	}}
}

// CleanUp implements engine.Planner. An update that Stayput had begun falls back.
func (v *Planner) CleanUp() {
	v.openResizeNoted()
	v.keepFallback()
	v.prePull().Finish(v.Decided.Reasons)
	if v.UpdateRevision != nil && revisions.Updating(v.UpdateRevision) {
		v.fallBack()
		return
	}
	v.unmark()
	v.nudge()
	v.patchRevisions()
}

// openResizeNoted opens the gates of pods whose resize was noted and will never be written.
func (v *Planner) openResizeNoted() {
	for _, m := range v.Live {
		if m.MidResize() && readiness.Closed(m.Pod) {
			v.Step(podstate.OpenGate(m.Pod, m.Unreachable, v.seen.Now))
		}
	}
}

// nudge nudges the native controller once after a gate has moved. Until then, that alone may have held a deletion of a pod by that
// controller (see gateMoved), and the controller does not try twice.
func (v *Planner) nudge() {
	if v.UpdateRevision == nil || v.WhyNative() != nil || !v.Unfinished() {
		return
	}
	moved, renewed := v.lastGate(), v.UpdateRevision.Labels[inplace.LabelRenewed]
	known, wait := times.Since(moved, readiness.GateSeenAfter, v.seen.Now)
	longAgo, _ := times.Since(moved, revisions.NudgeEvery, v.seen.Now)
	switch {
	case longAgo:
		return
	case !known:
		v.Again(wait)
	case times.TimeOf(renewed).Before(moved.Add(readiness.GateSeenAfter)):
		renewed = times.Seconds(v.seen.Now)
	}
	v.set(v.UpdateRevision, func(m *marks) { m.renewed = renewed })
}

// lastGate returns when the leader last moved a gate; zero if it moved none.
func (v *Planner) lastGate() time.Time {
	var last time.Time
	for _, m := range v.Live {
		if gate := readiness.MovedGate(m.Pod); gate != nil && gate.LastTransitionTime.After(last) {
			last = gate.LastTransitionTime.Time
		}
	}
	return last
}
