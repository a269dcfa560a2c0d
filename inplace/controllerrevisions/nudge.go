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

// nudger nudges the native controller if it has something left to do: it does not retry by itself what was held, or only late.
type nudger struct{ *observed }

func (o *observed) nudger() nudger { return nudger{o} }

// replaces reports whether the native controller replaces pods for an update. If not, it has nothing to be nudged for.
func (n nudger) replaces() bool { return n.update.Workload.Kept == nil }

// nudge nudges it by the newest revision. The DaemonSet controller watches its ControllerRevisions (updateHistory in
// pkg/controller/daemon/daemon_controller.go). Where the native controller watches none, it is nudged by a pod.
func (n nudger) nudge(marks marking, left bool) {
	switch {
	case !left || !n.replaces():
	case !n.kind.Traits().WatchesRevisions:
		n.byPod()
	case len(n.owned) > 0:
		newest := n.newest()
		marks[newest].renewed = n.update.Plan.NextNudge(newest.Labels[inplace.LabelRenewed], revisions.NudgeUnretriedEvery, n.seen.Now)
	}
}

// nudgeInVain nudges the native controller by a pod, which it watches too (updatePod), where writes to its revisions are refused or fail.
func (n nudger) nudgeInVain(left bool) {
	fails := len(n.owned) == 0 || n.seen.Fallback.NudgesFail(n.newest().Labels, revisions.NudgeUnretriedEvery, n.seen.Now)
	if left && fails && n.kind.Traits().WatchesRevisions {
		n.byPod()
	}
}

// nudgeToReplace nudges the native controller if it has to replace one of the pods that are next, and may wait for long before it tries
// again by itself. One that watches its revisions is nudged with every renewal.
func (n nudger) nudgeToReplace(next []*Pod) {
	replaced := func(m *Pod) bool { return m.WhyReplaced() != nil }
	if !n.kind.Traits().WatchesRevisions && slices.ContainsFunc(next, replaced) {
		n.byPod()
	}
}

func (n nudger) byPod() {
	if !n.replaces() {
		return
	}
	all := statesOf(n.pending, func(*Pod) bool { return true })
	podstate.NudgeByPod(n.update.Plan, all, revisions.NudgeUnretriedEvery, n.seen.Now)
}

// newest returns the revision by which the native controller is nudged.
func (n nudger) newest() *apps.ControllerRevision {
	if n.updateRevision != nil {
		return n.updateRevision
	}
	return n.owned[0]
}

// once returns the step that nudges the native controller in the middle of an update. It returns no step if there is nothing to update.
func (n nudger) once() []steps.Step {
	if !n.unfinished() || len(n.owned) == 0 || !n.replaces() {
		return nil
	}
	if !n.kind.Traits().WatchesRevisions {
		return []steps.Step{n.pending[0].Nudged(n.seen.Now)}
	}
	first := n.owned[0]
	return []steps.Step{steps.PatchRevision{
		Revision: first, Operations: patches.Guarded(first, revisions.Nudge(first.Labels, n.seen.Now)...), Why: revisions.WhyNudge,
	}}
}
