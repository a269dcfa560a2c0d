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
	deadline := cmp.Or(podstate.ResizeDeadline(p.Deployment.Spec.ProgressDeadlineSeconds), podstate.ResizeDeadline(nil))
	for _, m := range p.sets.Pods {
		back, wait := m.IsBack(deadline, p.Seen.Now)
		p.update.Plan.Again(wait)
		if goesBack, _ := m.Move.MayGoBack(nil, m.Pod, p.Seen.Now); m.Updated && readiness.Out(m.Pod) && goesBack {
			continue // it is put back into service first
		}
		if m.MidResize() || back {
			p.update.Plan.Step(m.Advance(p.sets.New.Rs, false, p.Seen.Now))
		}
	}
}

// startResizes begins further resizes: as many as may be unavailable, and, of pods that do not serve, perhaps for lack of resources, as
// many as may be unproven.
func (p *pacer) startResizes() {
	for _, m := range p.sets.Pods {
		if !m.Resizable() {
			continue
		}
		starting, grown := m.Starting(p.Seen.Now)
		counted := !m.Applied || m.Turn // it is unavailable for another change already
		idle := !m.Ready() && p.mayRisk()
		serves := p.mayTake(m, p.budget.And(p.spare()), p.update.WaitsForNodes)
		switch {
		case !counted && starting:
			p.update.Plan.Again(grown)
			continue
		case !counted && !idle && !serves, !m.Turn && !p.partition.Take(&m.State):
			continue
		case counted:
		default:
			p.take(m)
		}
		p.update.Plan.Step(m.Advance(p.sets.New.Rs, false, p.Seen.Now))
	}
}
