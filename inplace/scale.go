package inplace

// scale brings the sum of all replicas, borrowed ones aside, to what the Deployment wants. Nobody is settling now: deletions go through.
func (v *view) scale() {
	if excess := v.excess(); excess > 0 {
		v.shrink(excess)
		return
	}
	if need := v.cover(-v.excess()); need > 0 && v.still() {
		v.grow(need)
	}
}

// cover raises ReplicaSets that have more pods than replicas, before more pods are created elsewhere. It returns how many are
// still needed.
func (v *view) cover(need int) int {
	for _, s := range v.sets {
		if s.seen() {
			keep := min(need, s.surplus())
			v.post(s, keep, CauseCounted)
			need -= keep
		}
	}
	return need
}

// grow adds pods: to the target if it has been seen to work, or nothing else is left; else to the largest source.
func (v *view) grow(need int) {
	grows := v.target
	if v.target == nil || v.target.available() == 0 {
		for _, s := range v.sets {
			if s != v.target && len(s.pods) > 0 && (grows == nil || grows == v.target || len(s.pods) > len(grows.pods)) {
				grows = s
			}
		}
	}
	if grows == nil && len(v.sets) > 0 {
		grows = v.sets[len(v.sets)-1] // the newest, as natively: FindActiveOrLatest
	}
	if grows != nil {
		v.post(grows, need, CauseScaled)
	}
}

// shrink takes from the sources first, and never more pods that serve than may be missed. What is left to take then waits
// until more pods are available, as natively.
func (v *view) shrink(excess int) {
	budget := max(0, v.budget())
	for _, s := range v.sets {
		if s != v.target {
			v.take(s, &excess, &budget)
		}
	}
	if v.target != nil {
		v.take(v.target, &excess, &budget)
	}
}

// take lowers one ReplicaSet.
func (v *view) take(s *replicaSet, excess, budget *int) {
	idle := s.idle()
	taken := min(*excess, s.size(), idle+*budget)
	*excess -= taken
	*budget -= max(0, taken-idle)
	v.post(s, -taken, CauseScaled)
}

// idle is how many pods its controller deletes before any that is Ready (getPodsToDelete in
// pkg/controller/replicaset/replica_set.go). A pod whose kubelet has not seen that its gate is closed is Ready to it like others.
func (s *replicaSet) idle() int {
	return max(0, s.size()-len(s.pods)+s.unready())
}
