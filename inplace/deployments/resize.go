package deployments

import (
	"math"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/replicas"
)

// Pods get their CPU and memory while they serve, as many at a time as may be missed, and no further ones while those are missed that fail. A pod counts as
// missing until its kubelet says that it is done.

// finishResizes has every resize that was begun written, and forgets those that were taken back.
func (v *View) finishResizes() {
	for _, m := range v.Members {
		if m.MidResize() || m.OfTarget && len(m.Move.Resize) > 0 && !m.Restarts() && v.isBack(m) {
			v.Step(m.Advance(v.Target.Rs, false, v.Now))
		}
	}
}

// isBack: the containers of a pod of the target have again what it says, or take too long for anybody to wait.
func (v *View) isBack(m *replicas.Member) bool {
	why, wait := m.Move.WhyNotResized(m.Pod, v.resizeDeadline(), v.Now)
	v.Again(wait)
	return !m.Resizing || !m.Resizes() && why != ""
}

// startResizes begins others: as many as may be missed, and of those that do not serve, for which it may be what they lack, as many as may be unproven.
func (v *View) startResizes(turns member.Turns, lacking member.Lacking, budget *int) {
	unproven := v.unproven(turns)
	for _, m := range v.Members {
		if !m.Resizes() || m.MidResize() || m.Borrowed || m.Lost || !lacking.MayStart(&m.State) {
			continue
		}
		starting, grown := m.Starting(v.Now)
		switch {
		case !m.Arrived, turns[&m.State]: // on its way to something else, it counts already
		case starting:
			v.Again(grown)
			continue
		case !m.Ready() && unproven < v.mayMiss()+int(v.Deployment.MaxSurge()):
			unproven++
		case m.Available && *budget > -v.spare():
			*budget--
		default:
			continue
		}
		v.Step(m.Advance(v.Target.Rs, false, v.Now))
	}
}

// notResized is why the update cannot go on where the pods are; nil if it can.
func (v *View) notResized() *inplace.Reason {
	return member.NotResized(&v.Draft, v.states(), v.resizeDeadline(), v.Now)
}

// resizeDeadline is how long a kubelet has for one; 0 for as long as it takes, as natively.
func (v *View) resizeDeadline() time.Duration {
	switch seconds := v.Deployment.Spec.ProgressDeadlineSeconds; {
	case seconds == nil:
		return member.DefaultDeadline
	case *seconds == math.MaxInt32:
		return 0
	default:
		return time.Duration(*seconds) * time.Second
	}
}
