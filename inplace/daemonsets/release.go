package daemonsets

import (
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/inplace/times"
)

// Release gives the update back to the native controller: gates opened as soon as that is safe, and, unless all pods are the target's already, the
// target labelled, which ends the hold and wakes that controller (updateHistory in pkg/controller/daemon/daemon_controller.go).
// A pod that is half-way has no revision's hash and is replaced.
func (r DaemonRollout) Release(why inplace.Reason) steps.Plan {
	v := r.view()
	v.judged = steps.Verdict{Target: v.judged.Target, Reasons: inplace.Reasons{why}}
	if v.unfinished() {
		v.Record(v.DaemonSet, v.TargetHash(), why)
	}
	v.gates(nil)
	v.DismissAll(v.Pull.Pullers, why.Message)
	v.letGo()
	v.Phase(steps.PhaseNative, why.Message)
	return v.finish(nil)
}

// letGo takes the marks off. Whatever was held is not tried again by itself: as long as pods are left, somebody has to be woken.
func (v *daemonView) letGo() {
	v.unmark()
	if v.target != nil && v.unfinished() && v.DaemonSet.DeletionTimestamp == nil {
		v.set(v.target, func(m *marks) { m.released = times.Seconds(v.Now) })
	}
	v.patchRevisions()
}

// Wake is the step that has the DaemonSet controller look again at an update under way: it follows its ControllerRevisions
// (updateHistory in pkg/controller/daemon/daemon_controller.go). None if there is nothing to update.
func (r DaemonRollout) Wake() []steps.Step {
	if r.untouched() {
		return nil
	}
	v := r.view()
	if !v.unfinished() || len(v.Revisions) == 0 {
		return nil
	}
	first := v.Revisions[0]
	return []steps.Step{steps.PatchRevision{Revision: first, Operations: patches.Guarded(first, revisions.Woken(first.Labels, v.Now)...), Why: revisions.WhyWake}}
}

// leave leaves nothing of ours behind where the native controller updates, or has nothing to do. What we had begun is given back.
func (v *daemonView) leave() {
	v.gates(nil)
	v.openNoted()
	v.keepRecord()
	v.prePull().Leave(v.judged.Reasons)
	if v.target != nil && UnderWay(v.target) {
		v.letGo()
		return
	}
	v.unmark()
	v.wake()
	v.patchRevisions()
}

// openNoted opens the gates of pods whose resize was noted and will not be written by anybody.
func (v *daemonView) openNoted() {
	for _, m := range v.members {
		if m.MidResize() && readiness.Closed(m.Pod) {
			v.Step(member.OpenGate(m.Pod, m.Silent, v.Now))
		}
	}
}

// wake wakes the native controller once after a gate has moved: until then it may have been kept from deleting a pod for that alone (see
// gateMoved), and it does not try twice.
func (v *daemonView) wake() {
	if v.target == nil || v.workloadReason(v.target) != nil || !v.unfinished() {
		return
	}
	moved, woken := v.lastGate(), v.target.Labels[inplace.LabelWoken]
	known, wait := times.Since(moved, readiness.GateSeenAfter, v.Now)
	longAgo, _ := times.Since(moved, revisions.TouchEvery, v.Now)
	switch {
	case longAgo:
		return
	case !known:
		v.Again(wait)
	case times.TimeOf(woken).Before(moved.Add(readiness.GateSeenAfter)):
		woken = times.Seconds(v.Now)
	}
	v.set(v.target, func(m *marks) { m.woken = woken })
}

// lastGate is when a gate was last moved by the leader; zero if none was.
func (v *daemonView) lastGate() time.Time {
	var last time.Time
	for _, m := range v.members {
		if gate := readiness.MovedGate(m.Pod); gate != nil && gate.LastTransitionTime.After(last) {
			last = gate.LastTransitionTime.Time
		}
	}
	return last
}
