package controllerrevisions

import (
	"slices"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/inplace/times"
)

// LeftToDo implements engine.Planner.
func (v *Planner) LeftToDo() bool { return v.Unfinished() }

// FallBack implements engine.Planner. A partially patched pod has no revision's hash, so the native controller replaces it.
func (v *Planner) FallBack(inplace.Reason) {
	v.unmark()
	v.nudge(v.Unfinished() && v.Update.Workload.GetDeletionTimestamp() == nil)
	v.patchRevisions()
}

// nudge nudges the native controller if it has something left to do: it does not retry by itself what was held, or only late. The DaemonSet
// controller watches its ControllerRevisions (updateHistory in pkg/controller/daemon/daemon_controller.go).
func (v *Planner) nudge(left bool) {
	switch {
	case !left:
		return
	case !v.kind.WatchesRevisions():
		v.nudgePods()
		return
	case len(v.Owned) == 0:
		return
	}
	newest := v.newest()
	v.set(newest, func(m *marks) {
		m.renewed = v.plan.NextNudge(newest.Labels[inplace.LabelRenewed], revisions.NudgeUnretriedEvery, v.seen.Now)
	})
}

// nudgeByPod nudges the native controller by a pod, which it watches too (updatePod), where writes to its revisions are refused or fail.
func (v *Planner) nudgeByPod(left bool) {
	fails := len(v.Owned) == 0 || v.seen.Fallback.NudgesFail(v.newest().Labels, revisions.NudgeUnretriedEvery, v.seen.Now)
	if left && fails && v.kind.WatchesRevisions() {
		v.nudgePods()
	}
}

// nudgeToReplace nudges the native controller if it has to replace a pod next, and may wait for long before it tries again by itself. One
// that watches its revisions is nudged with every renewal.
func (v *Planner) nudgeToReplace() {
	replaced := func(m *Pod) bool { return m.WhyReplaced() != nil }
	if !v.kind.WatchesRevisions() && slices.ContainsFunc(v.Next(), replaced) {
		v.nudgePods()
	}
}

func (v *Planner) nudgePods() {
	podstate.NudgeByPod(v.plan, func(yield func(*podstate.State) bool) {
		for m := range v.pending() {
			if !yield(&m.State) {
				return
			}
		}
	}, revisions.NudgeUnretriedEvery, v.seen.Now)
}

// newest returns the revision by which the native controller is nudged.
func (v *Planner) newest() *apps.ControllerRevision {
	if v.UpdateRevision != nil {
		return v.UpdateRevision
	}
	return v.Owned[0]
}

// Nudge returns the step that nudges the native controller in the middle of an update. It returns no step if there is nothing to update.
func (v *Planner) Nudge() []steps.Step {
	if !v.Unfinished() || len(v.Owned) == 0 {
		return nil
	}
	if !v.kind.WatchesRevisions() {
		pending := slices.Collect(v.pending())
		return []steps.Step{pending[0].Nudged(v.seen.Now)}
	}
	first := v.Owned[0]
	return []steps.Step{steps.PatchRevision{
		Revision: first, Operations: patches.Guarded(first, revisions.Nudge(first.Labels, v.seen.Now)...), Why: revisions.WhyNudge,
	}}
}

// CleanUp implements engine.Planner. If pods are left of an update that Stayput had begun, the update falls back: two controllers that take
// pods down in turns would not know of each other.
func (v *Planner) CleanUp() {
	v.openResizeNoted()
	v.prePull().Finish(v.Update.Decided.Reasons)
	left := v.Unfinished() && v.seen.Mode.Manages() && v.seen.FellBack(v.Update.Workload.Template)
	v.plan.ForgetFallback(v.Update.Workload, v.seen.Fallback, left)
	v.nudgeByPod(left)
	if v.UpdateRevision != nil && revisions.Updating(v.UpdateRevision) && v.Unfinished() && v.seen.Mode.Manages() && !left {
		v.plan.PersistFallback(v.Update.Workload, v.Update.Workload.Template.Hash(), v.Update.Decided.Reasons[0])
		left = true
	}
	left = left || v.withdraws()
	v.unmark()
	v.nudgeForGate()
	v.nudge(left)
	v.patchRevisions()
}

// withdraws reports whether the plan gives an update back to a native controller that does not notice when marks go.
func (v *Planner) withdraws() bool {
	return !v.kind.WatchesRevisions() && v.began() != "" && v.Unfinished()
}

// openResizeNoted opens the gates of pods whose resize was noted and will never be written.
func (v *Planner) openResizeNoted() {
	for _, m := range v.Live {
		if m.MidResize() && readiness.Closed(m.Pod) {
			v.plan.Step(podstate.OpenGate(m.Pod, m.Unreachable, v.seen.Now))
		}
	}
}

// nudgeForGate nudges the native controller once after a gate has moved. Until then, that alone may have held a deletion of a pod by that
// controller (see GateMoved), and the controller does not try twice. One that watches no revisions tries again by itself.
func (v *Planner) nudgeForGate() {
	if v.UpdateRevision == nil || !v.kind.WatchesRevisions() || v.WhyNative() != nil || !v.Unfinished() {
		return
	}
	moved, renewed := v.lastGate(), v.UpdateRevision.Labels[inplace.LabelRenewed]
	known, wait := times.Since(moved, readiness.GateSeenAfter, v.seen.Now)
	longAgo, _ := times.Since(moved, revisions.NudgeEvery, v.seen.Now)
	switch {
	case longAgo:
		return
	case !known:
		v.plan.Again(wait)
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
