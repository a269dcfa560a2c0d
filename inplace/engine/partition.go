package engine

import (
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/steps"
)

// window: the maintenance window is closed, or only the user can let the update go on.
func window(p *Pace, s *podstate.State) *steps.Wait {
	if opens := p.Partition.Opens(); opens != "" && p.atPartition(s) {
		return &steps.Wait{Why: opens}
	}
	return nil
}

// partition: as many pods have begun as the partition lets move.
func partition(p *Pace, s *podstate.State) *steps.Wait {
	if p.atPartition(s) {
		return &steps.Wait{Why: "the partition to be lowered or removed"}
	}
	return nil
}

// atPartition reports whether the partition keeps the pod, besides those that this plan has begin.
func (p *Pace) atPartition(s *podstate.State) bool {
	return !s.Turn && (s.AtPartition || !p.Left.Allows(s))
}

func takePartition(p *Pace, s *podstate.State) {
	if !s.Turn {
		p.Left.Take(s)
	}
}
