package inplace

import (
	"strings"
	"time"

	"gomodules.xyz/jsonpatch/v2"
)

// How often a released target is touched. The Deployment controller drops a key after 15 failures, about 164 s, and would look again
// only after hours; the DaemonSet controller does not even try twice.
const (
	touchEvery       = time.Minute
	touchDaemonEvery = 10 * time.Second
)

// Release is what gives the update back to the native controller: gates opened as soon as that is safe, marks taken off, pods that are half-way made
// again what their labels say, and, unless it has all pods already, the target labelled, which ends the hold and wakes
// that controller. While there is no target, those that have pods are labelled in its stead.
func (r Rollout) Release(why Reason) Plan {
	v := r.view()
	v.judged = Verdict{Target: v.judged.Target, Reasons: Reasons{why}}
	if v.unfinished() || v.overfull() {
		v.record(v.Deployment, v.targetHash(), why)
	}
	v.gates(nil)
	v.dismissAll(v.Pull.Pullers, why.Message)
	v.goBack()
	v.unmarkSeen(why)
	v.forget()
	v.markReleased()
	v.patchSets(nil)
	v.phase(PhaseNative, why.Message)
	return v.finish(nil)
}

func (v *view) markReleased() {
	switch {
	case !v.unfinished():
	case v.target != nil:
		v.target.wish.released = v.seconds()
	default:
		for _, s := range v.sets {
			if s.inUse() {
				s.wish.released = v.seconds() + standsFor + v.targetHash()
			}
		}
	}
}

// Wake is the step that has the Deployment controller look again at an update under way: it follows its ReplicaSets
// (updateReplicaSet in pkg/controller/deployment/deployment_controller.go). None if there is nothing to update.
func (r Rollout) Wake() []Step {
	if r.untouched() {
		return nil
	}
	v := r.view()
	if !v.unfinished() && !v.settling() {
		return nil
	}
	newest := v.sets[len(v.sets)-1].rs
	return []Step{PatchReplicaSet{ReplicaSet: newest, Operations: guarded(newest, woken(newest.Labels, v.Now)...), Why: whyWake}}
}

// Wake is the step that has the DaemonSet controller look again at an update under way: it follows its ControllerRevisions
// (updateHistory in pkg/controller/daemon/daemon_controller.go). None if there is nothing to update.
func (r DaemonRollout) Wake() []Step {
	if r.untouched() {
		return nil
	}
	v := r.view()
	if !v.unfinished() || len(v.Revisions) == 0 {
		return nil
	}
	first := v.Revisions[0]
	return []Step{PatchRevision{Revision: first, Operations: guarded(first, woken(first.Labels, v.Now)...), Why: whyWake}}
}

const whyWake = "wake the native controller"

// woken always writes another value: the same one again is no event, and so wakes nobody. Two managers may say their last words in one second,
// and between the two a webhook of the second has refused what the first had woken.
func woken(labels map[string]string, now time.Time) []jsonpatch.Operation {
	at := seconds(now)
	if labels[LabelWoken] == at {
		at = seconds(now.Add(time.Second))
	}
	return setEntries("labels", labels, [2]string{LabelWoken, at})
}

// leave leaves nothing of ours behind where the native controllers update, or have nothing to do.
func (v *view) leave() {
	v.gates(nil)
	v.prePull().leave(v.judged.Reasons)
	v.goBack()
	if v.settling() && v.target != nil && v.unfinished() && !v.Mode.Manages() {
		v.target.wish.released = v.seconds() // a label taken off a namespace wakes nobody
	}
	v.unmarkSeen(Reason{Code: CodeMode})
	v.forget()
	v.keepReleased()
	v.patchSets(nil)
}

// unmarkSeen takes the marks off the ReplicaSets whose controllers know their pods. A DELETE of a pod that has just moved away would
// pass without the mark and be reported to the other ReplicaSet; the controller that sent it would wait five minutes for that
// (ExpectationsTimeout in pkg/controller/controller_utils.go). At uninstall nothing is held any more, and nobody comes back.
func (v *view) unmarkSeen(why Reason) {
	for _, s := range v.sets {
		if s.seen() || !s.inUse() || why.Code == CodeUninstalled {
			s.wish.settling = ""
		}
	}
}

// goBack makes pods that are half-way again what their labels say: if the user undid the update now, nobody else would ever notice.
func (v *view) goBack() {
	for _, m := range v.members {
		if m.isHalfway() {
			v.step(m.goBack(v.Now))
		}
	}
}

// keepReleased touches a released target as long as there is something left to do for the native controller, and takes the
// label off one for which that is over. Replicas that are missing count: with strategy Recreate the end of the last old pod does not
// wake that controller if there are new ones already (deletePod in pkg/controller/deployment/deployment_controller.go).
func (v *view) keepReleased() {
	standsIn := v.standIns()
	left := v.sourcesInUse() || v.overfull() || v.target != nil && v.target.size() < v.desired()
	v.keepRecord(left)
	v.wakeDeleters(left)
	for _, s := range v.sets {
		if Released(s.rs) {
			at, other, _ := strings.Cut(s.rs.Labels[LabelReleased], standsFor)
			s.wish.released = v.touched(at, left && (s == v.target || standsIn(s.rs)), touchEvery, v.Now)
			if s.wish.released != "" && other != "" {
				s.wish.released += standsFor + other
			}
		}
	}
}

// touched is the next value of LabelReleased: none when all is done, another one every now and then until that.
func (d *draft) touched(value string, unfinished bool, every time.Duration, now time.Time) string {
	if !unfinished {
		return ""
	}
	due, wait := since(timeOf(value), every, now)
	d.again(wait)
	if due {
		return seconds(now)
	}
	return value
}
