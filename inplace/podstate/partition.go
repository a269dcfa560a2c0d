package podstate

import (
	"fmt"
	"iter"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/readiness"
)

// A partition keeps pods on their old revision: one that pods had when the update began. What has moved since then, or was born with a revision
// that came since then, is not protected, so that an undo takes all back and a further edit takes along what has moved already. A pod that is
// half-way, or has the new revision, is never taken back because the partition was raised.

// PartitionBudget is what a partition leaves of an update: how many more pods of old revisions may begin to move.
type PartitionBudget struct {
	partition inplace.Partition
	left      int
	// wanted pods, those that have an old revision, and those that have the new one.
	wanted, old, updated int
}

// PartitionBudgetOf counts the pods, of which so many are wanted, borrowed ones aside. If none may begin any more, those that wait are Kept.
func PartitionBudgetOf(partition inplace.Partition, wanted int, pods iter.Seq[*State]) PartitionBudget {
	r := PartitionBudget{partition: partition, wanted: wanted}
	taken := 0
	for s := range pods {
		switch {
		case s.Surge:
		case s.holdable():
			r.old++
		default:
			taken++
		}
		if s.Updated && !s.Surge && !s.PartiallyPatched() {
			r.updated++
		}
	}
	r.left = partition.MayMove(wanted, r.old, taken)
	for s := range pods {
		s.AtPartition = r.left == 0 && s.holdable()
	}
	return r
}

// HoldsPods reports whether some pods stay as they are because of the partition. Without it the native controller would replace them, so while it does the
// update is not left to that for what others lack.
func (r PartitionBudget) HoldsPods() bool { return r.left < r.old }

// Unresized says what keeps a stage from being reached, as what the update is doing; empty if nothing is the matter.
func (r PartitionBudget) Unresized(why *inplace.Reason) string {
	if why == nil {
		return ""
	}
	return fmt.Sprintf("waiting at partition %s: %s", r.partition, why.Message)
}

// holdable: it has an old revision, and nothing of it has moved.
func (s *State) holdable() bool { return s.Current && !s.Updated && !s.PartiallyPatched() && !s.Surge }

// Take reports whether the pod may begin to move, or go on, and if so counts it.
func (r *PartitionBudget) Take(s *State) bool {
	switch {
	case !s.holdable():
	case r.left <= 0:
		return false
	default:
		r.left--
	}
	return true
}

// Force counts a pod that cannot be kept any more.
func (r *PartitionBudget) Force(s *State) {
	if s.holdable() {
		r.left--
	}
}

// PrePulls is on how many nodes more there may be pullers of so many: on none for pods that are kept in the end.
func (r PartitionBudget) PrePulls(most int, pods iter.Seq[*State]) int {
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
func (r *PartitionBudget) Waits(pods iter.Seq[*State]) string {
	kept := false
	for s := range pods {
		kept = kept || s.AtPartition
		if !s.AtPartition && !(s.Updated && s.Available && !s.PartiallyPatched()) {
			return ""
		}
	}
	if !kept || r.partition.Flaw() != "" {
		return ""
	}
	return fmt.Sprintf("waiting at partition %s: %d of %d pods updated", r.partition, r.updated, r.wanted)
}

// Flaw is why all pods are kept although no such stage was asked for, as what the update is doing; empty if that is not why.
func (r *PartitionBudget) Flaw(pods iter.Seq[*State]) string {
	for s := range pods {
		if flaw := r.partition.Flaw(); s.AtPartition && flaw != "" {
			return "waiting for a partition: " + flaw
		}
	}
	return ""
}
