package deployments

// scaling decides which ReplicaSets get more replicas, and which get fewer.
type scaling struct {
	Sets
	ledger Ledger
}

// Scale returns the changes that bring the sum of all replicas, not counting surge replicas, to what the Deployment wants. If pods are to
// be removed, no ReplicaSet may be marked as updating: deletions must pass. Budget is how many available pods may become unavailable.
func (sets Sets) Scale(budget int) Ledger {
	s := scaling{Sets: sets}
	if excess := sets.Excess(); excess > 0 {
		s.shrink(excess, max(0, budget))
	} else if need := s.cover(-excess); need > 0 && sets.AllObserved() {
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

// grow adds pods: to the new ReplicaSet if that is known to work, or if no other has pods; otherwise to the old one with the most pods.
func (c *scaling) grow(need int) {
	need = c.growCurrent(need)
	grows := c.New
	if c.New == nil || c.New.Available() == 0 {
		for _, s := range c.Old() {
			if len(s.Pods) > 0 && (grows == nil || grows == c.New || len(s.Pods) > len(grows.Pods)) {
				grows = s
			}
		}
	}
	if grows == nil && len(c.All) > 0 {
		grows = c.All[len(c.All)-1] // the newest, as natively: FindActiveOrLatest
	}
	if grows != nil {
		c.ledger.Post(grows.Rs.Name, need, CauseScaled)
	}
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
