package deployments

import "slices"

// scaling decides which ReplicaSets get more replicas, and which get fewer.
type scaling struct {
	Sets
	ledger Ledger
}

// Scale returns the changes that bring the sum of all replicas, not counting surge replicas, to what the Deployment wants. If pods are to
// be removed, no ReplicaSet may be marked as updating: deletions must pass. Budget is how many available pods may become unavailable.
func (sets Sets) Scale(budget int) Ledger {
	s, excess := scaling{Sets: sets}, sets.Excess()
	s.shrink(max(0, excess), max(0, budget))
	if need := s.cover(max(0, -excess)); sets.AllObserved() {
		s.grow(need)
	}
	return s.ledger
}

// cover raises ReplicaSets that have more pods than replicas, before other ReplicaSets create more pods. It returns how many replicas are
// still missing.
func (c *scaling) cover(need int) int {
	for _, s := range c.All {
		if s.Seen() {
			keep := min(need, s.Surplus())
			c.ledger.Post(s.Rs.Name, keep, CauseCounted)
			need -= keep
		}
	}
	return need
}

// grow adds pods.
func (c *scaling) grow(need int) {
	need = c.growCurrent(need)
	c.ledger.Post(c.toGrow().Rs.Name, need, CauseScaled)
}

// toGrow returns the new ReplicaSet if that is known to work, or if no other has pods; otherwise the old one with the most pods. There is
// at least one ReplicaSet, because an update without any is not held.
func (c *scaling) toGrow() *Set {
	old := largest(slices.DeleteFunc(c.Old(), func(s *Set) bool { return len(s.Pods) == 0 }), func(s *Set) int { return len(s.Pods) })
	switch {
	case c.New != nil && (old == nil || c.New.Available() > 0):
		return c.New
	case old != nil:
		return old
	}
	return c.All[len(c.All)-1] // the newest, as natively: FindActiveOrLatest
}

// growCurrent adds pods that the partition keeps: further ones, or replacements. They get an old revision, as many as the partition says,
// so that scaling updates no pod. It returns how many replicas are still missing.
func (c *scaling) growCurrent(need int) int {
	old := c.LargestCurrent()
	if old == nil {
		return need
	}
	kept := min(need, max(0, -c.BeyondPartition()))
	c.ledger.Post(old.Rs.Name, kept, CauseScaled)
	return need - kept
}

// shrink removes replicas of the old ReplicaSets first, except those that the partition keeps. It never removes more pods that serve than
// may be unavailable. The remainder waits until more pods are available, as natively.
func (c *scaling) shrink(excess, budget int) {
	take := func(s *Set, most int) int {
		// Its controller deletes so many before any Ready pod (getPodsToDelete in pkg/controller/replicaset/replica_set.go).
		idle := max(0, s.Size()-len(s.Pods)+s.Unready())
		taken := min(excess, most, s.Size(), idle+budget)
		excess -= taken
		budget -= max(0, taken-idle)
		c.ledger.Post(s.Rs.Name, -taken, CauseScaled)
		return taken
	}
	beyondPartition := max(0, c.BeyondPartition())
	for _, s := range c.Old() {
		if c.IsCurrent(s) {
			beyondPartition -= take(s, beyondPartition)
		} else {
			take(s, s.Size())
		}
	}
	if c.New != nil {
		take(c.New, c.New.Size())
	}
}
