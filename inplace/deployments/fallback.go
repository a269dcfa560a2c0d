package deployments

import (
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// FallBack returns the plan with which the update falls back to the native controller. It opens gates as soon as that is safe, removes
// marks, and makes partially patched pods again what their labels say. Unless the update revision has all pods already, it also labels
// the update revision, which ends the hold and nudges the native controller. While there is no update revision, it labels the ReplicaSets
// that have pods instead.
func (r Rollout) FallBack(why inplace.Reason) steps.Plan {
	if why.Code == inplace.CodeUninstalled {
		r.Seen.OldDryRun = dryrun.Result{Unknown: why.Message}
	}
	return engine.FallBack(r.Planner(), why)
}

// LeftToDo implements engine.Planner.
func (v *Planner) LeftToDo() bool { return v.unfinished() || v.Sets.Overfull() }

// FallBack implements engine.Planner.
func (v *Planner) FallBack(why inplace.Reason) {
	v.goBack()
	v.unmarkSeen(why)
	v.forgetSurge()
	v.nudge(v.LeftToDo())
	v.patchSets(nil)
}

// Nudge returns the steps that make native controllers look at an update in progress again; none if there is nothing to update. The
// Deployment controller follows its ReplicaSets (updateReplicaSet in pkg/controller/deployment/deployment_controller.go), so one write to
// the newest is enough. The ReplicaSet controller does not repeat a deletion that was refused, so each ReplicaSet with too many pods gets
// a write.
func (r Rollout) Nudge() []steps.Step {
	if r.untouched() {
		return nil
	}
	v := r.Planner()
	if !v.unfinished() && !v.Sets.AnyUpdating() {
		return nil
	}
	var nudged []steps.Step
	for i, s := range v.Sets {
		if i == len(v.Sets)-1 || s.Surplus() > 0 {
			nudged = append(nudged, steps.PatchReplicaSet{ReplicaSet: s.Rs,
				Operations: patches.GuardedButStatus(s.Rs, revisions.Nudge(s.Rs.Labels, v.seen.Now)...), Why: revisions.WhyNudge})
		}
	}
	return nudged
}

// CleanUp implements engine.Planner.
func (v *Planner) CleanUp() {
	v.prePull().Finish(v.update.Decided.Reasons)
	v.goBack()
	v.unmarkSeen(inplace.Reason{Code: inplace.CodeMode})
	v.forgetSurge()
	v.keepFallback()
	v.patchSets(nil)
}

// unmarkSeen removes the marks from ReplicaSets whose controllers know their pods. Without the mark, the DELETE of a pod that has just
// moved away would pass, and would be reported to the other ReplicaSet; the controller that sent it would wait five minutes for it
// (ExpectationsTimeout in pkg/controller/controller_utils.go). During an uninstall all marks are removed: nothing is held any more, and
// Stayput does not return.
func (v *Planner) unmarkSeen(why inplace.Reason) {
	for _, s := range v.Sets {
		if s.Seen() || !s.InUse() || why.Code == inplace.CodeUninstalled {
			s.Wanted.Updating = ""
		}
	}
}

// dryRunRetryAfter is the time after which the dry run of a revision whose new pods were refused is repeated.
const dryRunRetryAfter = time.Minute

// goBack makes partially patched pods again what their labels say: if the user undid the update now, no controller would ever notice
// them. Before it patches a pod, it asks by a dry run what new pods of that revision get. If no new pod is admitted, the pod stays as it
// is, as it would natively.
func (v *Planner) goBack() {
	for _, m := range v.Members {
		switch {
		case !m.PartiallyPatched():
		case len(m.Back) > 0 && m.NewPods.UpdateRevision == "":
			v.plan.Result.DryRun = newPodOf(m.Owner.Rs)
			v.plan.Result.DryRun.Back = true
		case len(m.Back) > 0 && m.NewPods.Refused != "":
			v.plan.Again(dryRunRetryAfter)
		default:
			v.plan.Step(m.GoBack(v.seen.Now))
		}
	}
}
