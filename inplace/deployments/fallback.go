package deployments

import (
	"slices"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// FallBack returns the plan with which the update falls back to the native controller. It puts pods back into service as soon as that is
// safe, removes marks, and makes partially patched pods again what their labels say. Unless the update revision has all pods already, it
// also persists the fallback, which ends the hold, and nudges the native controller.
func (r Rollout) FallBack(why inplace.Reason) steps.Plan {
	if why.Code == inplace.CodeUninstalled {
		r.Seen.OldDryRun = dryrun.Result{Unknown: why.Message}
	}
	return engine.FallBack(r.begin, why)
}

// LeftToDo implements engine.Planner.
func (p planner) LeftToDo() bool { return p.sets.Unfinished() || p.sets.Overfull() }

// FallBack implements engine.Planner.
func (p planner) FallBack(why inplace.Reason) {
	marks := p.giveBack(why)
	p.nudge(marks, p.LeftToDo())
	patcher{observed: p.observed, marks: marks}.patch()
}

// CleanUp implements engine.Planner.
func (p planner) CleanUp() {
	p.prePull().Finish(p.update.Decided.Reasons)
	marks := p.giveBack(inplace.Reason{Code: inplace.CodeMode})
	p.keepFallback(marks)
	patcher{observed: p.observed, marks: marks}.patch()
}

// Nudge returns the steps that make native controllers look at an update in progress again; none if there is nothing to update. The
// Deployment controller follows its ReplicaSets (updateReplicaSet in pkg/controller/deployment/deployment_controller.go), so one write to
// the newest is enough. The ReplicaSet controller does not repeat a deletion that was refused, so each ReplicaSet with too many pods gets
// a write.
func (r Rollout) Nudge() []steps.Step {
	if engine.Untouched(&r) {
		return nil
	}
	sets := r.observed().sets
	if !sets.Unfinished() && !sets.AnyUpdating() {
		return nil
	}
	var nudged []steps.Step
	for i, s := range sets.All {
		if i == len(sets.All)-1 || s.Surplus() > 0 {
			nudged = append(nudged, steps.PatchReplicaSet{ReplicaSet: s.Rs,
				Operations: patches.GuardedButStatus(s.Rs, revisions.Nudge(s.Rs.Labels, r.Seen.Now)...), Why: revisions.WhyNudge})
		}
	}
	return nudged
}

// giveBack leaves pods as native controllers expect them, and returns the marks that ReplicaSets keep. Notes and marks of surge pods go:
// for these controllers, pods beyond the replicas are their own surge.
func (o *observed) giveBack(why inplace.Reason) Marking {
	o.goBack()
	marks := o.sets.Marking()
	for _, s := range o.sets.All {
		marks[s].Surge = ""
		// The controller of the ReplicaSet knows its pods. Without the mark, the DELETE of a pod that has just moved away would pass, and would
		// be reported to the other ReplicaSet; the controller that sent it would wait five minutes for it (ExpectationsTimeout in
		// pkg/controller/controller_utils.go). During an uninstall all marks are removed: nothing is held any more.
		known := s.Seen() || !s.InUse() || why.Code == inplace.CodeUninstalled
		switch {
		case !known:
		case !slices.ContainsFunc(s.Pods, (*Pod).PartiallyPatched):
			marks[s].Updating = ""
		case revisions.Updating(s.Rs): // its pods go back only while it has the mark, but their deletions are held no longer
			marks[s].Updating += revisions.Scaling
		}
		for _, m := range s.SurgePods() {
			o.update.Plan.Step(m.UnmarkSurge())
		}
	}
	return marks
}

// goBack makes partially patched pods again what their labels say: if the user undid the update now, no controller would ever notice
// them. Before it patches a pod, it asks by a dry run what new pods of that revision get. If no new pod is admitted, the pod stays as it
// is, as it would natively, until another dry run (engine.Asked).
func (o *observed) goBack() {
	plan := o.update.Plan
	for _, m := range o.sets.Pods {
		switch {
		case !m.PartiallyPatched():
		case len(m.Back) > 0 && m.NewPods.UpdateRevision == "":
			plan.Result.DryRun = newPodOf(m.Owner.Rs)
			plan.Result.DryRun.Back = true
		case len(m.Back) > 0 && m.NewPods.Refused != "":
			plan.Again(inplace.LeaderPatience)
		default:
			plan.Step(m.GoBack(o.Seen.Now))
		}
	}
}
