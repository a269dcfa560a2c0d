package deployments

import (
	"cmp"

	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
)

// Pods get their CPU and memory while they serve, as many at a time as may be unavailable, and no others while pods that fail are
// unavailable. A pod counts as unavailable until its kubelet reports that the resize is done.

// finishResizes writes the resizes that have begun, and removes the marks of resizes that were taken back.
func (p *pacer) finishResizes() {
	// Without a deadline, the default one counts, so that an undo always succeeds.
	deadline := cmp.Or(podstate.ResizeDeadline(p.deployment.Spec.ProgressDeadlineSeconds), podstate.ResizeDeadline(nil))
	for _, m := range p.Members {
		back, wait := m.IsBack(deadline, p.seen.Now)
		p.plan.Again(wait)
		if opens, _ := m.MayReopen(p.seen.Now); m.Updated && readiness.Closed(m.Pod) && opens {
			continue // the gate is opened first
		}
		if m.MidResize() || back {
			p.plan.Step(m.Advance(p.NewRS.Rs, false, p.seen.Now))
		}
	}
}

// startResizes begins further resizes: as many as may be unavailable, and, of pods that do not serve, perhaps for lack of resources, as
// many as may be unproven.
func (p *pacer) startResizes() {
	unproven := p.unproven()
	for _, m := range p.Members {
		if !m.Resizable(p.blocked) {
			continue
		}
		starting, grown := m.Starting(p.seen.Now)
		counted := !m.Applied || p.turns[&m.State] // it is unavailable for another change already
		idle := !m.Ready() && unproven < p.maxUnavailable()+int(p.deployment.MaxSurge())
		serves := m.Available && p.budget > -p.spare()
		switch {
		case !counted && starting:
			p.plan.Again(grown)
			continue
		case !counted && !idle && !serves, !p.turns[&m.State] && !p.partition.Take(&m.State):
			continue
		case counted:
		case idle:
			unproven++
		default:
			p.budget--
		}
		p.plan.Step(m.Advance(p.NewRS.Rs, false, p.seen.Now))
	}
}
