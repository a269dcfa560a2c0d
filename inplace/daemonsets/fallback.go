package daemonsets

import (
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/inplace/times"
)

// FallBack returns the plan by which the update falls back to the native controller. It opens gates as soon as that is safe. Unless all
// pods have the update revision already, it labels the update revision. That ends the hold and nudges the native controller (updateHistory
// in pkg/controller/daemon/daemon_controller.go). A partially patched pod has no revision's hash, so the native controller replaces it.
func (r Rollout) FallBack(why inplace.Reason) steps.Plan {
	return engine.FallBack(r.planner(), why)
}

// LeftToDo implements engine.Planner.
func (v *planner) LeftToDo() bool { return v.unfinished() }

// FallBack implements engine.Planner.
func (v *planner) FallBack(inplace.Reason) { v.fallBack() }

// fallBack removes the marks. The native controller does not retry by itself what was held. So as long as pods are left, it is nudged.
func (v *planner) fallBack() {
	v.unmark()
	if v.updateRevision != nil && v.unfinished() && v.DaemonSet.DeletionTimestamp == nil {
		v.set(v.updateRevision, func(m *marks) { m.fallback = times.Seconds(v.Seen.Now) })
	}
	v.patchRevisions()
}

// Nudge returns the step that nudges the DaemonSet controller in the middle of an update: that controller watches its ControllerRevisions
// (updateHistory in pkg/controller/daemon/daemon_controller.go). It returns no step if there is nothing to update.
func (r Rollout) Nudge() []steps.Step {
	if r.untouched() {
		return nil
	}
	v := r.planner()
	if !v.unfinished() || len(v.Revisions) == 0 {
		return nil
	}
	first := v.Revisions[0]
	return []steps.Step{steps.PatchRevision{
		Revision: first, Operations: patches.Guarded(first, revisions.Nudge(first.Labels, v.Seen.Now)...), Why: revisions.WhyNudge,
	}}
}

// CleanUp implements engine.Planner. An update that Stayput had begun falls back.
func (v *planner) CleanUp() {
	v.openResizeNoted()
	v.keepFallback()
	v.prePull().Finish(v.Decided.Reasons)
	if v.updateRevision != nil && Updating(v.updateRevision) {
		v.fallBack()
		return
	}
	v.unmark()
	v.nudge()
	v.patchRevisions()
}

// openResizeNoted opens the gates of pods whose resize was noted and will never be written.
func (v *planner) openResizeNoted() {
	for _, m := range v.pods {
		if m.MidResize() && readiness.Closed(m.Pod) {
			v.Step(podstate.OpenGate(m.Pod, m.Unreachable, v.Seen.Now))
		}
	}
}

// nudge nudges the native controller once after a gate has moved. Until then, that alone may have held a deletion of a pod by that
// controller (see gateMoved), and the controller does not try twice.
func (v *planner) nudge() {
	if v.updateRevision == nil || v.workloadReason(v.updateRevision) != nil || !v.unfinished() {
		return
	}
	moved, renewed := v.lastGate(), v.updateRevision.Labels[inplace.LabelRenewed]
	known, wait := times.Since(moved, readiness.GateSeenAfter, v.Seen.Now)
	longAgo, _ := times.Since(moved, revisions.NudgeEvery, v.Seen.Now)
	switch {
	case longAgo:
		return
	case !known:
		v.Again(wait)
	case times.TimeOf(renewed).Before(moved.Add(readiness.GateSeenAfter)):
		renewed = times.Seconds(v.Seen.Now)
	}
	v.set(v.updateRevision, func(m *marks) { m.renewed = renewed })
}

// lastGate returns when the leader last moved a gate; zero if it moved none.
func (v *planner) lastGate() time.Time {
	var last time.Time
	for _, m := range v.pods {
		if gate := readiness.MovedGate(m.Pod); gate != nil && gate.LastTransitionTime.After(last) {
			last = gate.LastTransitionTime.Time
		}
	}
	return last
}
