package controllerrevisions

import (
	"slices"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// The native controller is nudged if it has something left to do: it does not retry by itself what was held, or only late.

// replaces reports whether the native controller replaces pods for an update. If not, it has nothing to be nudged for.
func (o *observed) replaces() bool { return o.update.Workload.Kept == nil }

// nudge nudges it by the newest revision. The DaemonSet controller watches its ControllerRevisions (updateHistory in
// pkg/controller/daemon/daemon_controller.go). Where the native controller watches none, it is nudged by a pod.
func (o *observed) nudge(marks marking, left bool) {
	switch {
	case !left || !o.replaces():
	case !o.kind.Traits().WatchesRevisions:
		o.nudgeByPod()
	case len(o.owned) > 0:
		newest := o.newest()
		marks[newest].renewed = o.update.Plan.NextNudge(newest.Labels[inplace.LabelRenewed], revisions.NudgeUnretriedEvery, o.seen.Now)
	}
}

// nudgeInVain nudges the native controller by a pod, which it watches too (updatePod), where writes to its revisions are refused or fail.
func (o *observed) nudgeInVain(left bool) {
	fails := len(o.owned) == 0 || o.seen.Fallback.NudgesFail(o.newest().Labels, revisions.NudgeUnretriedEvery, o.seen.Now)
	if left && fails && o.kind.Traits().WatchesRevisions {
		o.nudgeByPod()
	}
}

// nudgeToReplace nudges the native controller if it has to replace one of the pods that are next, and may wait for long before it tries
// again by itself. One that watches its revisions is nudged with every renewal.
func (o *observed) nudgeToReplace(next []*Pod) {
	replaced := func(m *Pod) bool { return m.WhyReplaced() != nil }
	if !o.kind.Traits().WatchesRevisions && slices.ContainsFunc(next, replaced) {
		o.nudgeByPod()
	}
}

func (o *observed) nudgeByPod() {
	if !o.replaces() {
		return
	}
	all := statesOf(o.pending, func(*Pod) bool { return true })
	podstate.NudgeByPod(o.update.Plan, all, revisions.NudgeUnretriedEvery, o.seen.Now)
}

// newest returns the revision by which the native controller is nudged.
func (o *observed) newest() *apps.ControllerRevision {
	if o.updateRevision != nil {
		return o.updateRevision
	}
	return o.owned[0]
}

// nudgeOnce returns the step that nudges the native controller in the middle of an update; none if there is nothing to update.
func (o *observed) nudgeOnce() []steps.Step {
	if !o.unfinished() || len(o.owned) == 0 || !o.replaces() {
		return nil
	}
	if !o.kind.Traits().WatchesRevisions {
		return []steps.Step{o.pending[0].Nudged(o.seen.Now)}
	}
	first := o.owned[0]
	return []steps.Step{steps.PatchRevision{
		Revision: first, Operations: patches.Guarded(first, revisions.Nudge(first.Labels, o.seen.Now)...), Why: revisions.WhyNudge,
	}}
}
