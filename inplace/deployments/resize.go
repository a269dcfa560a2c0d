package deployments

import (
	"cmp"

	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
)

// Pods get their CPU and memory while they serve, as many at a time as may be missed, and no further ones while those are missed that fail. A pod counts as
// missing until its kubelet says that it is done.

// finishResizes has every resize that was begun written, and forgets those that were taken back.
func (v *Planner) finishResizes() {
	deadline := cmp.Or(podstate.ResizeDeadline(v.Deployment.Spec.ProgressDeadlineSeconds), podstate.ResizeDeadline(nil)) // an undo gets through in any case
	for _, m := range v.Members {
		back, wait := m.IsBack(deadline, v.Now)
		v.Again(wait)
		if opens, _ := m.MayReopen(v.Now); m.Updated && readiness.Closed(m.Pod) && opens {
			continue // that comes first
		}
		if m.MidResize() || back {
			v.Step(m.Advance(v.NewRS.Rs, false, v.Now))
		}
	}
}

// startResizes begins others: as many as may be missed, and of those that do not serve, for which it may be what they lack, as many as may be unproven.
func (v *Planner) startResizes(p *pace, blocked podstate.Blocked, budget *int) {
	unproven := v.unproven(p.turns)
	for _, m := range v.Members {
		if !m.Resizable(blocked) {
			continue
		}
		starting, grown := m.Starting(v.Now)
		counted := !m.Applied || p.turns[&m.State] // on its way to something else
		idle := !m.Ready() && unproven < v.maxUnavailable()+int(v.Deployment.MaxSurge())
		serves := m.Available && *budget > -v.spare()
		switch {
		case !counted && starting:
			v.Again(grown)
			continue
		case !counted && !idle && !serves, !p.turns[&m.State] && !p.partition.Take(&m.State):
			continue
		case counted:
		case idle:
			unproven++
		default:
			*budget--
		}
		v.Step(m.Advance(v.NewRS.Rs, false, v.Now))
	}
}
