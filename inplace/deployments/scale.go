package deployments

import (
	"github.com/stayput/stayput/inplace/ledger"
	"github.com/stayput/stayput/inplace/replicas"
)

// scale brings the sum of all replicas, borrowed ones aside, to what the Deployment wants. Nobody is settling now: deletions go through.
func (v *View) scale() {
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
func (v *View) cover(need int) int {
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
func (v *View) grow(need int) {
	need = v.growOld(need)
	grows := v.Target
	if v.Target == nil || v.Target.Available() == 0 {
		for _, s := range v.Sets {
			if s != v.Target && len(s.Pods) > 0 && (grows == nil || grows == v.Target || len(s.Pods) > len(grows.Pods)) {
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

// growOld adds the pods that the partition keeps of more pods, or in the place of others: as many on old revisions as it says, so that scaling
// updates none. It returns how many are still needed.
func (v *View) growOld(need int) int {
	old := v.LargestOld(v.Target)
	if old == nil {
		return need
	}
	kept := min(need, max(0, -v.Unkept(v.Target, v.keeps)))
	v.Post(old, kept, ledger.CauseScaled)
	return need - kept
}

// shrink takes from the sources first, as far as no partition keeps their pods, and never more pods that serve than may be missed. What is left to take then waits
// until more pods are available, as natively.
func (v *View) shrink(excess int) {
	budget, unkept := max(0, v.budget()), max(0, v.Unkept(v.Target, v.keeps))
	for _, s := range v.Sets {
		switch {
		case s == v.Target:
		case v.Old(s):
			unkept -= v.take(s, unkept, &excess, &budget)
		default:
			v.take(s, s.Size(), &excess, &budget)
		}
	}
	if v.Target != nil {
		v.take(v.Target, v.Target.Size(), &excess, &budget)
	}
}

// take lowers one ReplicaSet, by so many at most. It returns by how many.
func (v *View) take(s *replicas.Set, most int, excess, budget *int) int {
	idle := s.Idle()
	taken := min(*excess, most, s.Size(), idle+*budget)
	*excess -= taken
	*budget -= max(0, taken-idle)
	v.Post(s, -taken, ledger.CauseScaled)
	return taken
}
