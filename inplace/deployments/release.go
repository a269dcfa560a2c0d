package deployments

import (
	"strings"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/rehearsal"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// Release is what gives the update back to the native controller: gates opened as soon as that is safe, marks taken off, pods that are half-way made
// again what their labels say, and, unless it has all pods already, the target labelled, which ends the hold and wakes
// that controller. While there is no target, those that have pods are labelled in its stead.
func (r Rollout) Release(why inplace.Reason) steps.Plan {
	if why.Code == inplace.CodeUninstalled {
		r.Own = rehearsal.Rehearsal{Unknown: why.Message}
	}
	v := r.View()
	v.judged = steps.Verdict{Target: v.judged.Target, Reasons: inplace.Reasons{why}}
	if v.unfinished() || v.Overfull() {
		v.Record(v.Deployment, v.TargetHash(), why)
	}
	v.gates(nil)
	v.DismissAll(v.Pull.Pullers, why.Message)
	v.goBack()
	v.unmarkSeen(why)
	v.forget()
	v.markReleased()
	v.patchSets(nil)
	v.Phase(steps.PhaseNative, why.Message)
	return v.finish(nil)
}

func (v *View) markReleased() {
	switch {
	case !v.unfinished():
	case v.Target != nil:
		v.Target.Wish.Released = v.seconds()
	default:
		for _, s := range v.Sets {
			if s.InUse() {
				s.Wish.Released = v.seconds() + revisions.StandsFor + v.TargetHash()
			}
		}
	}
}

// Wake are the steps that have native controllers look again at an update under way: that of Deployments, which follows its ReplicaSets (updateReplicaSet in
// pkg/controller/deployment/deployment_controller.go), by the newest; and that of ReplicaSets by each that has too many pods, as a deletion that was
// refused does not come again. None if there is nothing to update.
func (r Rollout) Wake() []steps.Step {
	if r.untouched() {
		return nil
	}
	v := r.View()
	if !v.unfinished() && !v.Settling() {
		return nil
	}
	var woken []steps.Step
	for i, s := range v.Sets {
		if i == len(v.Sets)-1 || s.Surplus() > 0 {
			woken = append(woken, steps.PatchReplicaSet{ReplicaSet: s.Rs, Operations: patches.GuardedButStatus(s.Rs, revisions.Woken(s.Rs.Labels, v.Now)...), Why: revisions.WhyWake})
		}
	}
	return woken
}

// leave leaves nothing of ours behind where the native controllers update, or have nothing to do.
func (v *View) leave() {
	v.gates(nil)
	v.prePull().Leave(v.judged.Reasons)
	v.goBack()
	if v.Settling() && v.Target != nil && v.unfinished() && !v.Mode.Manages() {
		v.Target.Wish.Released = v.seconds() // a label taken off a namespace wakes nobody
	}
	v.unmarkSeen(inplace.Reason{Code: inplace.CodeMode})
	v.forget()
	v.keepReleased()
	v.patchSets(nil)
}

// unmarkSeen takes the marks off the ReplicaSets whose controllers know their pods. A DELETE of a pod that has just moved away would
// pass without the mark and be reported to the other ReplicaSet; the controller that sent it would wait five minutes for that
// (ExpectationsTimeout in pkg/controller/controller_utils.go). At uninstall nothing is held any more, and nobody comes back.
func (v *View) unmarkSeen(why inplace.Reason) {
	for _, s := range v.Sets {
		if s.Seen() || !s.InUse() || why.Code == inplace.CodeUninstalled {
			s.Wish.Settling = ""
		}
	}
}

// askedAgain is how long after new pods of a revision were refused they are asked for again.
const askedAgain = time.Minute

// goBack makes pods that are half-way again what their labels say: if the user undid the update now, nobody else would ever notice. Before any gets
// something, admission is asked what new ones would get. One of which no new pod is admitted stays as it is, as it would natively.
func (v *View) goBack() {
	for _, m := range v.Members {
		switch {
		case !m.IsHalfway():
		case len(m.Back) > 0 && m.Born.Target == "":
			v.Result.Rehearse = newPodOf(m.Owner.Rs)
			v.Result.Rehearse.Back = true
		case len(m.Back) > 0 && m.Born.Refused != "":
			v.Again(askedAgain)
		default:
			v.Step(m.GoBack(v.Now))
		}
	}
}

// keepReleased touches a released target as long as there is something left to do for the native controller, and takes the
// label off one for which that is over. Replicas that are missing count: with strategy Recreate the end of the last old pod does not
// wake that controller if there are new ones already (deletePod in pkg/controller/deployment/deployment_controller.go).
func (v *View) keepReleased() {
	standsIn := v.standIns()
	left := v.sourcesInUse() || v.Overfull() || v.Target != nil && v.Target.Size() < v.desired()
	v.keepRecord(left)
	v.wakeDeleters(left)
	for _, s := range v.Sets {
		if revisions.Released(s.Rs) {
			at, other, _ := strings.Cut(s.Rs.Labels[inplace.LabelReleased], revisions.StandsFor)
			s.Wish.Released = v.Touched(at, left && (s == v.Target || standsIn(s.Rs)), revisions.TouchEvery, v.Now)
			if s.Wish.Released != "" && other != "" {
				s.Wish.Released += revisions.StandsFor + other
			}
		}
	}
}
