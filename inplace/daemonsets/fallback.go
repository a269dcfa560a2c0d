package daemonsets

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

// FallBack gives the update back to the native controller: gates opened as soon as that is safe, and, unless all pods are the target's already, the
// target labelled, which ends the hold and wakes that controller (updateHistory in pkg/controller/daemon/daemon_controller.go).
// A pod that is half-way has no revision's hash and is replaced.
func (r Rollout) FallBack(why inplace.Reason) steps.Plan {
	v := r.planner()
	v.decided = steps.Decision{UpdateRevision: v.decided.UpdateRevision, Reasons: inplace.Reasons{why}}
	if v.unfinished() {
		v.PersistFallback(v.DaemonSet, v.TemplateHash(), why)
	}
	v.gates(nil)
	v.DeletePrePullPods(v.Pull.PrePullPods, why.Message)
	v.fallBack()
	v.Phase(steps.PhaseNative, why.Message)
	return v.finish(nil)
}

// fallBack takes the marks off. Whatever was held is not tried again by itself: as long as pods are left, somebody has to be woken.
func (v *planner) fallBack() {
	v.unmark()
	if v.updateRevision != nil && v.unfinished() && v.DaemonSet.DeletionTimestamp == nil {
		v.set(v.updateRevision, func(m *marks) { m.fallback = times.Seconds(v.Now) })
	}
	v.patchRevisions()
}

// Nudge is the step that has the DaemonSet controller look again at an update under way: it follows its ControllerRevisions
// (updateHistory in pkg/controller/daemon/daemon_controller.go). None if there is nothing to update.
func (r Rollout) Nudge() []steps.Step {
	if r.untouched() {
		return nil
	}
	v := r.planner()
	if !v.unfinished() || len(v.Revisions) == 0 {
		return nil
	}
	first := v.Revisions[0]
	return []steps.Step{steps.PatchRevision{Revision: first, Operations: patches.Guarded(first, revisions.Nudge(first.Labels, v.Now)...), Why: revisions.WhyNudge}}
}

// leave leaves nothing of ours behind where the native controller updates, or has nothing to do. What we had begun is given back.
func (v *planner) leave() {
	v.gates(nil)
	v.openNoted()
	v.keepFallback()
	v.prePull().Leave(v.decided.Reasons)
	if v.updateRevision != nil && Updating(v.updateRevision) {
		v.fallBack()
		return
	}
	v.unmark()
	v.nudge()
	v.patchRevisions()
}

// openNoted opens the gates of pods whose resize was noted and will not be written by anybody.
func (v *planner) openNoted() {
	for _, m := range v.members {
		if m.MidResize() && readiness.Closed(m.Pod) {
			v.Step(podstate.OpenGate(m.Pod, m.Unreachable, v.Now))
		}
	}
}

// nudge wakes the native controller once after a gate has moved: until then it may have been kept from deleting a pod for that alone (see
// gateMoved), and it does not try twice.
func (v *planner) nudge() {
	if v.updateRevision == nil || v.workloadReason(v.updateRevision) != nil || !v.unfinished() {
		return
	}
	moved, renewed := v.lastGate(), v.updateRevision.Labels[inplace.LabelRenewed]
	known, wait := times.Since(moved, readiness.GateSeenAfter, v.Now)
	longAgo, _ := times.Since(moved, revisions.NudgeEvery, v.Now)
	switch {
	case longAgo:
		return
	case !known:
		v.Again(wait)
	case times.TimeOf(renewed).Before(moved.Add(readiness.GateSeenAfter)):
		renewed = times.Seconds(v.Now)
	}
	v.set(v.updateRevision, func(m *marks) { m.renewed = renewed })
}

// lastGate is when a gate was last moved by the leader; zero if none was.
func (v *planner) lastGate() time.Time {
	var last time.Time
	for _, m := range v.members {
		if gate := readiness.MovedGate(m.Pod); gate != nil && gate.LastTransitionTime.After(last) {
			last = gate.LastTransitionTime.Time
		}
	}
	return last
}
