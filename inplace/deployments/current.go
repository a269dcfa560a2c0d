package deployments

import (
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/revisions"
)

// IsCurrent reports whether pods had the ReplicaSet when the update began. If that is not noted for any ReplicaSet, because a write was
// lost, it reports true: then too few pods move rather than too many.
func (sets Sets) IsCurrent(s *Set) bool {
	noted := func(s *Set) bool {
		return revisions.IsCurrent(s.Rs.Labels[inplace.LabelCurrent], s.Rs.Labels[inplace.LabelUpdating])
	}
	return noted(s) || !sets.any(noted)
}

// BeyondPartition returns how many replicas of the old ReplicaSets exceed the pods that the partition keeps there; negative if the
// partition would keep more.
func (sets Sets) BeyondPartition() int {
	beyond := -sets.Kept
	for _, s := range sets.Old() {
		if sets.IsCurrent(s) {
			beyond += s.Size()
		}
	}
	return beyond
}

// LargestCurrent returns the old ReplicaSet with the most replicas that pods had when the update began; nil if none is in use.
func (sets Sets) LargestCurrent() *Set {
	var largest *Set
	for _, s := range sets.Old() {
		if s.InUse() && sets.IsCurrent(s) && (largest == nil || s.Size() > largest.Size()) {
			largest = s
		}
	}
	return largest
}
