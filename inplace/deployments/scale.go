package deployments

import (
	"github.com/stayput/stayput/inplace/ledger"
	"github.com/stayput/stayput/inplace/replicas"
)

// scale brings the sum of all replicas, borrowed ones aside, to what the Deployment wants. Nobody is settling now: deletions go through.
func (v *Planner) scale() {
	if excess := v.excess(); excess > 0 {
		v.shrink(excess)
		return
	}
	if need := v.cover(-v.excess()); need > 0 && v.Still() {
		v.grow(need)
	}
}

// cover raises ReplicaSets that have more pods than replicas, before more pods are created elsewhere. It returns how many are
// still needed.
func (v *Planner) cover(need int) int {
	for _, s := range v.Sets {
		if s.Seen() {
			keep := min(need, s.Surplus())
			v.Post(s, keep, ledger.CauseCounted)
			need -= keep
		}
	}
	return need
}

// grow adds pods: to the target if it has been seen to work, or nothing else is left; else to the largest source.
func (v *Planner) grow(need int) {
	need = v.growCurrent(need)
	grows := v.NewRS
	if v.NewRS == nil || v.NewRS.Available() == 0 {
		for _, s := range v.Sets {
			if s != v.NewRS && len(s.Pods) > 0 && (grows == nil || grows == v.NewRS || len(s.Pods) > len(grows.Pods)) {
				grows = s
			}
		}
	}
	if grows == nil && len(v.Sets) > 0 {
		grows = v.Sets[len(v.Sets)-1] // the newest, as natively: FindActiveOrLatest
	}
	if grows != nil {
		v.Post(grows, need, ledger.CauseScaled)
	}
}

// growCurrent adds the pods that the partition keeps of more pods, or in the place of others: as many on old revisions as it says, so that scaling
// updates none. It returns how many are still needed.
func (v *Planner) growCurrent(need int) int {
	old := v.LargestCurrent(v.NewRS)
	if old == nil {
		return need
	}
	kept := min(need, max(0, -v.BeyondPartition(v.NewRS, v.partitioned)))
	v.Post(old, kept, ledger.CauseScaled)
	return need - kept
}

// shrink takes from the sources first, as far as no partition keeps their pods, and never more pods that serve than may be missed. What is left to take then waits
// until more pods are available, as natively.
func (v *Planner) shrink(excess int) {
	budget, beyondPartition := max(0, v.budget()), max(0, v.BeyondPartition(v.NewRS, v.partitioned))
	for _, s := range v.Sets {
		switch {
		case s == v.NewRS:
		case v.IsCurrent(s):
			beyondPartition -= v.take(s, beyondPartition, &excess, &budget)
		default:
			v.take(s, s.Size(), &excess, &budget)
		}
	}
	if v.NewRS != nil {
		v.take(v.NewRS, v.NewRS.Size(), &excess, &budget)
	}
}

// take lowers one ReplicaSet, by so many at most. It returns by how many.
func (v *Planner) take(s *replicas.Set, most int, excess, budget *int) int {
	idle := s.Idle()
	taken := min(*excess, most, s.Size(), idle+*budget)
	*excess -= taken
	*budget -= max(0, taken-idle)
	v.Post(s, -taken, ledger.CauseScaled)
	return taken
}
