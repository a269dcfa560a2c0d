package deployments

import (
	"cmp"

	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
)

// Pods get their CPU and memory while they serve, as many at a time as may be unavailable, and no others while pods that fail are
// unavailable. A pod counts as unavailable until its kubelet reports that the resize is done.

// finishResizes writes the resizes that have begun, and removes the marks of resizes that were taken back.
func (v *Planner) finishResizes() {
	// Without a deadline, the default one counts, so that an undo always succeeds.
	deadline := cmp.Or(podstate.ResizeDeadline(v.Deployment.Spec.ProgressDeadlineSeconds), podstate.ResizeDeadline(nil))
	for _, m := range v.Members {
		back, wait := m.IsBack(deadline, v.Seen.Now)
		v.Again(wait)
		if opens, _ := m.MayReopen(v.Seen.Now); m.Updated && readiness.Closed(m.Pod) && opens {
			continue // the gate is opened first
		}
		if m.MidResize() || back {
			v.Step(m.Advance(v.NewRS.Rs, false, v.Seen.Now))
		}
	}
}

// startResizes begins further resizes: as many as may be unavailable, and, of pods that do not serve, perhaps for lack of resources, as
// many as may be unproven.
func (v *Planner) startResizes(p *pace, blocked podstate.Blocked, budget *int) {
	unproven := v.unproven(p.turns)
	for _, m := range v.Members {
		if !m.Resizable(blocked) {
			continue
		}
		starting, grown := m.Starting(v.Seen.Now)
		counted := !m.Applied || p.turns[&m.State] // it is unavailable for another change already
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
		v.Step(m.Advance(v.NewRS.Rs, false, v.Seen.Now))
	}
}
