package deployments

import (
	"strings"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// FallBack is what gives the update back to the native controller: gates opened as soon as that is safe, marks taken off, pods that are half-way made
// again what their labels say, and, unless it has all pods already, the target labelled, which ends the hold and wakes
// that controller. While there is no target, those that have pods are labelled in its stead.
func (r Rollout) FallBack(why inplace.Reason) steps.Plan {
	if why.Code == inplace.CodeUninstalled {
		r.OldDryRun = dryrun.Result{Unknown: why.Message}
	}
	v := r.Planner()
	v.decided = steps.Decision{UpdateRevision: v.decided.UpdateRevision, Reasons: inplace.Reasons{why}}
	if v.unfinished() || v.Overfull() {
		v.PersistFallback(v.Deployment, v.TemplateHash(), why)
	}
	v.gates(nil)
	v.DeletePrePullPods(v.Pull.PrePullPods, why.Message)
	v.goBack()
	v.unmarkSeen(why)
	v.forgetSurge()
	v.markFallback()
	v.patchSets(nil)
	v.Phase(steps.PhaseNative, why.Message)
	return v.finish(nil)
}

func (v *Planner) markFallback() {
	switch {
	case !v.unfinished():
	case v.NewRS != nil:
		v.NewRS.Wanted.Fallback = v.seconds()
	default:
		for _, s := range v.Sets {
			if s.InUse() {
				s.Wanted.Fallback = v.seconds() + revisions.StandsFor + v.TemplateHash()
			}
		}
	}
}

// Nudge are the steps that have native controllers look again at an update under way: that of Deployments, which follows its ReplicaSets (updateReplicaSet in
// pkg/controller/deployment/deployment_controller.go), by the newest; and that of ReplicaSets by each that has too many pods, as a deletion that was
// refused does not come again. None if there is nothing to update.
func (r Rollout) Nudge() []steps.Step {
	if r.untouched() {
		return nil
	}
	v := r.Planner()
	if !v.unfinished() && !v.AnyUpdating() {
		return nil
	}
	var nudged []steps.Step
	for i, s := range v.Sets {
		if i == len(v.Sets)-1 || s.Surplus() > 0 {
			nudged = append(nudged, steps.PatchReplicaSet{ReplicaSet: s.Rs, Operations: patches.GuardedButStatus(s.Rs, revisions.Nudge(s.Rs.Labels, v.Now)...), Why: revisions.WhyNudge})
		}
	}
	return nudged
}

// leave leaves nothing of ours behind where the native controllers update, or have nothing to do.
func (v *Planner) leave() {
	v.gates(nil)
	v.prePull().Leave(v.decided.Reasons)
	v.goBack()
	if v.AnyUpdating() && v.NewRS != nil && v.unfinished() && !v.Mode.Manages() {
		v.NewRS.Wanted.Fallback = v.seconds() // a label taken off a namespace wakes nobody
	}
	v.unmarkSeen(inplace.Reason{Code: inplace.CodeMode})
	v.forgetSurge()
	v.renewFallback()
	v.patchSets(nil)
}

// unmarkSeen takes the marks off the ReplicaSets whose controllers know their pods. A DELETE of a pod that has just moved away would
// pass without the mark and be reported to the other ReplicaSet; the controller that sent it would wait five minutes for that
// (ExpectationsTimeout in pkg/controller/controller_utils.go). At uninstall nothing is held any more, and nobody comes back.
func (v *Planner) unmarkSeen(why inplace.Reason) {
	for _, s := range v.Sets {
		if s.Seen() || !s.InUse() || why.Code == inplace.CodeUninstalled {
			s.Wanted.Updating = ""
		}
	}
}

// askedAgain is how long after new pods of a revision were refused they are asked for again.
const askedAgain = time.Minute

// goBack makes pods that are half-way again what their labels say: if the user undid the update now, nobody else would ever notice. Before any gets
// something, admission is asked what new ones would get. One of which no new pod is admitted stays as it is, as it would natively.
func (v *Planner) goBack() {
	for _, m := range v.Members {
		switch {
		case !m.PartiallyPatched():
		case len(m.Back) > 0 && m.NewPods.UpdateRevision == "":
			v.Result.DryRun = newPodOf(m.Owner.Rs)
			v.Result.DryRun.Back = true
		case len(m.Back) > 0 && m.NewPods.Refused != "":
			v.Again(askedAgain)
		default:
			v.Step(m.GoBack(v.Now))
		}
	}
}

// renewFallback touches a released target as long as there is something left to do for the native controller, and takes the
// label off one for which that is over. Replicas that are missing count: with strategy Recreate the end of the last old pod does not
// wake that controller if there are new ones already (deletePod in pkg/controller/deployment/deployment_controller.go).
func (v *Planner) renewFallback() {
	standsIn := v.standIns()
	left := v.oldInUse() || v.Overfull() || v.NewRS != nil && v.NewRS.Size() < v.desired()
	v.keepFallback(left)
	v.nudgeDeleters(left)
	for _, s := range v.Sets {
		if revisions.FellBack(s.Rs) {
			at, other, _ := strings.Cut(s.Rs.Labels[inplace.LabelFallback], revisions.StandsFor)
			s.Wanted.Fallback = v.NextNudge(at, left && (s == v.NewRS || standsIn(s.Rs)), revisions.NudgeEvery, v.Now)
			if s.Wanted.Fallback != "" && other != "" {
				s.Wanted.Fallback += revisions.StandsFor + other
			}
		}
	}
}
