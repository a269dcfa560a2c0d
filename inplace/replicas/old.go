package replicas

import (
	"slices"

	"github.com/stayput/stayput/inplace/revisions"
)

// NoteOld notes which ReplicaSets pods have besides the target, unless that is known since the update began.
func (all Sets) NoteOld(target *Set, began string) {
	if slices.ContainsFunc(all, func(s *Set) bool { return revisions.Old(s.Wish.Old, began) }) {
		return
	}
	for _, s := range all {
		s.Wish.Old = ""
		if s != target && s.InUse() {
			s.Wish.Old = began
		}
	}
}

// Old tells whether pods had the ReplicaSet when the update began; any, if that is not noted.
func (all Sets) Old(s *Set) bool {
	noted := func(s *Set) bool { return revisions.Old(s.Wish.Old, s.Wish.Settling) }
	return noted(s) || !slices.ContainsFunc(all, noted)
}

// Unkept is how many replicas of the old ReplicaSets are not for the pods that a partition keeps there; negative if it would keep more.
func (all Sets) Unkept(target *Set, kept int) int {
	for _, s := range all {
		if s != target && all.Old(s) {
			kept -= s.Size()
		}
	}
	return -kept
}

// LargestOld is the old ReplicaSet with the most replicas, the target aside; nil if none is in use.
func (all Sets) LargestOld(target *Set) *Set {
	var largest *Set
	for _, s := range all {
		if s != target && s.InUse() && all.Old(s) && (largest == nil || s.Size() > largest.Size()) {
			largest = s
		}
	}
	return largest
}
