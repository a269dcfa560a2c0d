package deployments

import (
	"github.com/stayput/stayput/inplace/replicas"
)

// scale brings the sum of all replicas, not counting surge replicas, to what the Deployment wants. No ReplicaSet is marked as updating
// now, so deletions pass.
func (v *Planner) scale() {
	if excess := v.excess(); excess > 0 {
		v.shrink(excess)
		return
	}
	if need := v.cover(-v.excess()); need > 0 && v.Sets.AllObserved() {
		v.grow(need)
	}
}

// cover raises ReplicaSets that have more pods than replicas, before other ReplicaSets create more pods. It returns how many replicas are
// still missing.
func (v *Planner) cover(need int) int {
	for _, s := range v.Sets {
		if s.Seen() {
			keep := min(need, s.Surplus())
			v.Post(s, keep, replicas.CauseCounted)
			need -= keep
		}
	}
	return need
}

// grow adds pods: to the new ReplicaSet if that is known to work, or if no other has pods; otherwise to the old one with the most pods.
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
		v.Post(grows, need, replicas.CauseScaled)
	}
}

// growCurrent adds pods that the partition keeps: further ones, or replacements. They get an old revision, as many as the partition says,
// so that scaling updates no pod. It returns how many replicas are still missing.
func (v *Planner) growCurrent(need int) int {
	old := v.Sets.LargestCurrent(v.NewRS)
	if old == nil {
		return need
	}
	kept := min(need, max(0, -v.Sets.BeyondPartition(v.NewRS, v.partitioned)))
	v.Post(old, kept, replicas.CauseScaled)
	return need - kept
}

// shrink removes replicas of the old ReplicaSets first, except those that the partition keeps. It never removes more pods that serve than
// may be unavailable. The remainder waits until more pods are available, as natively.
func (v *Planner) shrink(excess int) {
	budget, beyondPartition := max(0, v.budget()), max(0, v.Sets.BeyondPartition(v.NewRS, v.partitioned))
	for _, s := range v.Sets {
		switch {
		case s == v.NewRS:
		case v.Sets.IsCurrent(s):
			beyondPartition -= v.take(s, beyondPartition, &excess, &budget)
		default:
			v.take(s, s.Size(), &excess, &budget)
		}
	}
	if v.NewRS != nil {
		v.take(v.NewRS, v.NewRS.Size(), &excess, &budget)
	}
}

// take lowers one ReplicaSet by at most that many. It returns by how many.
func (v *Planner) take(s *replicas.Set, most int, excess, budget *int) int {
	idle := s.Idle()
	taken := min(*excess, most, s.Size(), idle+*budget)
	*excess -= taken
	*budget -= max(0, taken-idle)
	v.Post(s, -taken, replicas.CauseScaled)
	return taken
}
