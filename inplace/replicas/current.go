package replicas

import (
	"slices"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/revisions"
)

// MarkCurrent notes which ReplicaSets, besides the new ReplicaSet, pods had when the update began. Once that is noted, it adds only a
// ReplicaSet that gets its first mark later: a ReplicaSet that pods have moved to since the update began was marked before, as the new
// ReplicaSet.
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

// marksNow reports whether the ReplicaSet gets the mark of an update now and had none.
func (s *Set) marksNow() bool {
	return s.Wanted.Updating != "" && s.Rs.Labels[inplace.LabelUpdating] == ""
}

// IsCurrent reports whether pods had the ReplicaSet when the update began. If that is not noted for any ReplicaSet, because an older
// manager began the update or a write was lost, it reports true: then too few pods move rather than too many.
func (all Sets) IsCurrent(s *Set) bool {
	notedSurge := func(s *Set) bool { return revisions.IsCurrent(s.Wanted.Current, s.Wanted.Updating) }
	return notedSurge(s) || !slices.ContainsFunc(all, notedSurge)
}

// BeyondPartition returns how many replicas of the old ReplicaSets exceed the pods that a partition keeps there; negative if the partition
// would keep more.
func (all Sets) BeyondPartition(newRS *Set, kept int) int {
	for _, s := range all {
		if s != newRS && all.IsCurrent(s) {
			kept -= s.Size()
		}
	}
	return -kept
}

// LargestCurrent returns the old ReplicaSet with the most replicas that pods had when the update began; nil if none is in use.
func (all Sets) LargestCurrent(newRS *Set) *Set {
	var largest *Set
	for _, s := range all {
		if s != newRS && s.InUse() && all.IsCurrent(s) && (largest == nil || s.Size() > largest.Size()) {
			largest = s
		}
	}
	return largest
}
