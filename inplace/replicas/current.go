package replicas

import (
	"slices"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/revisions"
)

// MarkCurrent notes which ReplicaSets pods have besides the target. Once that is known, only one that is marked later is added: what pods have come to
// since the update began was marked before, as a target.
func (all Sets) MarkCurrent(newRS *Set, began string) {
	known := slices.ContainsFunc(all, func(s *Set) bool { return revisions.IsCurrent(s.Wanted.Current, began) })
	for _, s := range all {
		switch had := s != newRS && s.InUse(); {
		case had && (!known || s.marksNow()):
			s.Wanted.Current = began
		case !known:
			s.Wanted.Current = ""
		}
	}
}

// marksNow reports whether it had no mark of any update.
func (s *Set) marksNow() bool {
	return s.Wanted.Updating != "" && s.Rs.Labels[inplace.LabelUpdating] == ""
}

// IsCurrent reports whether pods had the ReplicaSet when the update began; any, if that is not noted.
func (all Sets) IsCurrent(s *Set) bool {
	notedSurge := func(s *Set) bool { return revisions.IsCurrent(s.Wanted.Current, s.Wanted.Updating) }
	return notedSurge(s) || !slices.ContainsFunc(all, notedSurge)
}

// BeyondPartition is how many replicas of the old ReplicaSets are not for the pods that a partition keeps there; negative if it would keep more.
func (all Sets) BeyondPartition(newRS *Set, kept int) int {
	for _, s := range all {
		if s != newRS && all.IsCurrent(s) {
			kept -= s.Size()
		}
	}
	return -kept
}

// LargestCurrent is the old ReplicaSet with the most replicas, the target aside; nil if none is in use.
func (all Sets) LargestCurrent(newRS *Set) *Set {
	var largest *Set
	for _, s := range all {
		if s != newRS && s.InUse() && all.IsCurrent(s) && (largest == nil || s.Size() > largest.Size()) {
			largest = s
		}
	}
	return largest
}
