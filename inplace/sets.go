package inplace

import "slices"

// sets are the ReplicaSets of a Deployment, oldest first.
type sets []*replicaSet

// sum is what all controllers together work towards.
func (all sets) sum() int {
	sum := 0
	for _, s := range all {
		sum += s.size()
	}
	return sum
}

// total is the sum once the pods that are just moving are counted where they are.
func (all sets) total() int {
	total := 0
	for _, s := range all {
		total += max(s.size(), len(s.pods))
	}
	return total
}

// still: every controller has seen every pod where it is, and none has one too many.
func (all sets) still() bool {
	return !slices.ContainsFunc(all, func(s *replicaSet) bool { return s.inUse() && (s.surplus() > 0 || !s.seen()) })
}

// overfull: a mark keeps pods that are too many from being deleted.
func (all sets) overfull() bool {
	return slices.ContainsFunc(all, func(s *replicaSet) bool { return Settling(s.rs) && s.surplus() > 0 })
}

// settling: some ReplicaSet is marked.
func (all sets) settling() bool {
	return slices.ContainsFunc(all, func(s *replicaSet) bool { return Settling(s.rs) })
}

func (all sets) loan() int {
	loan := 0
	for _, s := range all {
		loan += s.loan
	}
	return loan
}
