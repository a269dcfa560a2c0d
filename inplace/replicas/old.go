package replicas

import (
	"slices"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/revisions"
)

// NoteOld notes which ReplicaSets pods have besides the target. Once that is known, only one that is marked later is added: what pods have come to
// since the update began was marked before, as a target.
func (all Sets) NoteOld(target *Set, began string) {
	known := slices.ContainsFunc(all, func(s *Set) bool { return revisions.Old(s.Wish.Old, began) })
	for _, s := range all {
		switch had := s != target && s.InUse(); {
		case had && (!known || s.marksNow()):
			s.Wish.Old = began
		case !known:
			s.Wish.Old = ""
		}
	}
}

// marksNow tells whether it had no mark of any update.
func (s *Set) marksNow() bool {
	return s.Wish.Settling != "" && s.Rs.Labels[inplace.LabelSettling] == ""
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
