package deployments

import (
	"github.com/stayput/stayput/inplace/member"
)

// Pods get their CPU and memory while they serve, as many at a time as may be missed, and no further ones while those are missed that fail. A pod counts as
// missing until its kubelet says that it is done.

// finishResizes has every resize that was begun written, and forgets those that were taken back.
func (v *View) finishResizes() {
	for _, m := range v.Members {
		back, wait := m.IsBack(member.ResizeDeadline(v.Deployment.Spec.ProgressDeadlineSeconds), v.Now)
		v.Again(wait)
		if m.MidResize() || back {
			v.Step(m.Advance(v.Target.Rs, false, v.Now))
		}
	}
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
