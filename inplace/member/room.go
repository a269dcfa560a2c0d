package member

import (
	"fmt"
	"iter"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/readiness"
)

// A partition keeps pods on their old revision: one that pods had when the update began. What has moved since then, or was born with a revision
// that came since then, is not protected, so that an undo takes all back and a further edit takes along what has moved already. A pod that is
// half-way, or has the new revision, is never taken back because the partition was raised.

// Room is what a partition leaves of an update: how many more pods of old revisions may begin to move.
type Room struct {
	partition inplace.Partition
	left      int
	// wanted pods, those that have an old revision, and those that have the new one.
	wanted, old, updated int
}

// RoomOf counts the pods, of which so many are wanted, borrowed ones aside. If none may begin any more, those that wait are Kept.
func RoomOf(partition inplace.Partition, wanted int, pods iter.Seq[*State]) Room {
	r := Room{partition: partition, wanted: wanted}
	taken := 0
	for s := range pods {
		switch {
		case s.Borrowed:
		case s.keepable():
			r.old++
		default:
			taken++
		}
		if s.OfTarget && !s.Borrowed && !s.IsHalfway() {
			r.updated++
		}
	}
	r.left = partition.MayMove(wanted, r.old, taken)
	for s := range pods {
		s.Kept = r.left == 0 && s.keepable()
	}
	return r
}

// Protects tells whether some pods stay as they are because of the partition. Without it the native controller would replace them, so while it does the
// update is not left to that for what others lack.
func (r Room) Protects() bool { return r.left < r.old }

// Unresized says what keeps a stage from being reached, as what the update is doing; empty if nothing is the matter.
func (r Room) Unresized(why *inplace.Reason) string {
	if why == nil {
		return ""
	}
	return fmt.Sprintf("waiting at partition %s: %s", r.partition, why.Message)
}

// keepable: it has an old revision, and nothing of it has moved.
func (s *State) keepable() bool { return s.Old && !s.OfTarget && !s.IsHalfway() && !s.Borrowed }

// Take tells whether the pod may begin to move, or go on, and if so counts it.
func (r *Room) Take(s *State) bool {
	switch {
	case !s.keepable():
	case r.left <= 0:
		return false
	default:
		r.left--
	}
	return true
}

// Force counts a pod that cannot be kept any more.
func (r *Room) Force(s *State) {
	if s.keepable() {
		r.left--
	}
}

// Pulls is on how many nodes more there may be pullers of so many: on none for pods that are kept in the end.
func (r Room) Pulls(most int, pods iter.Seq[*State]) int {
	if r.partition.Keeps(r.wanted) == 0 {
		return most
	}
	for s := range pods {
		if readiness.Closed(s.Pod) {
			r.Take(s)
		}
	}
	may := 0
	for s := range pods {
		if s.ToRestart() && !readiness.Closed(s.Pod) && r.Take(s) {
			may++
		}
	}
	return min(most, may)
}

// Waits says that the partition is all that the update waits for, and how far it is; empty if it waits for anything else, or for nothing.
func (r *Room) Waits(pods iter.Seq[*State]) string {
	kept := false
	for s := range pods {
		kept = kept || s.Kept
		if !s.Kept && !(s.OfTarget && s.Available && !s.IsHalfway()) {
			return ""
		}
	}
	if !kept || r.partition.Flaw() != "" {
		return ""
	}
	return fmt.Sprintf("waiting at partition %s: %d of %d pods updated", r.partition, r.updated, r.wanted)
}

// Flaw is why all pods are kept although no such stage was asked for, as what the update is doing; empty if that is not why.
func (r *Room) Flaw(pods iter.Seq[*State]) string {
	for s := range pods {
		if flaw := r.partition.Flaw(); s.Kept && flaw != "" {
			return "waiting for a partition: " + flaw
		}
	}
	return ""
}
