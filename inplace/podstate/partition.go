package podstate

import (
	"cmp"
	"fmt"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/readiness"
)

// A partition keeps pods on the current revision, that is, on one that pods had when the update began. A pod that has moved since then, or
// was created with a revision that came later, is not protected. So an undo takes all pods back, and a further edit also changes the pods
// that have moved already. Raising the partition never takes back a pod that is partially patched or has the new revision.
//
// How many more pods may move is one rule (inplace.Partition.MayMove), and which ones is decided here, for all kinds. A pod at the
// partition is none that has to restart or to be resized. So no surge pod and no pre-pull pod is created for it, and it is not replaced if
// its node is unreachable. Nothing else knows of partitions, except scaling, which keeps as many replicas on current revisions
// (deployments.Sets.BeyondPartition), and what users are told: steps.EditDecision, steps.Preview and PodProgress.
//
// A maintenance window that is closed is a partition that keeps all pods (inplace.Window). So is an obstacle (inplace.Obstacle), which also
// keeps pods that have moved since the update began: where no new pod is admitted, for example, none is to have the update revision.
//
// A partition that keeps all pods asks for the images only: nodes pull them, and nothing restarts (PartitionBudget.PullsOnly).
//
// Pods that do not get their CPU and memory make an update fall back, so that the native controller replaces them. It would also replace
// the pods at the partition. So as long as the partition keeps any pod, the update waits instead, and says why. The DaemonSet controller
// may still delete pods whose resize is infeasible, within the partition budget.

// PartitionBudget is what a partition leaves of an update: how many more pods of old revisions may begin to move.
type PartitionBudget struct {
	partition inplace.Partition
	left      int
	// at is the partition at which the update waits if no more pods may move: while the window is closed, the partition alone if no more
	// pods could move if it were open.
	at inplace.Partition
	// wanted counts the pods that the workload wants, old those that have an old revision, updated those that have the update revision.
	wanted, old, updated int
}

// PartitionBudgetOf counts the pods, without surge pods. Wanted is how many pods the workload wants. If no further pod may begin to move,
// it sets AtPartition of those that wait.
func PartitionBudgetOf(partition inplace.Partition, wanted int, pods []*State) PartitionBudget {
	r := PartitionBudget{partition: partition, wanted: wanted}
	taken := 0
	for _, s := range pods {
		switch {
		case s.Surge:
		case r.holds(s):
			r.old++
		default:
			taken++
		}
		if s.Updated && !s.Surge && !s.PartiallyPatched() {
			r.updated++
		}
	}
	r.left, r.at = partition.MayMove(wanted, r.old, taken), partition
	if alone := partition.Alone(); partition.Closed != "" && alone.Flaw() == "" && alone.MayMove(wanted, r.old, taken) == 0 {
		r.at = alone
	}
	for _, s := range pods {
		s.AtPartition = r.left == 0 && r.holds(s)
	}
	return r
}

// HoldsPods reports whether some pods stay as they are because of the partition. Without the partition, the native controller would replace
// them. So as long as HoldsPods reports true, the update does not fall back for what other pods lack.
func (r PartitionBudget) HoldsPods() bool { return r.left < r.old }

// Unresized returns a message that says why the update cannot reach the partition; empty if why is nil.
func (r PartitionBudget) Unresized(why *inplace.Reason) string {
	if why == nil {
		return ""
	}
	return fmt.Sprintf("waiting %s: %s", r.partition.Where(), why.Message)
}

// holds reports whether the partition may keep the pod: it has an old revision, and no part of its move has been made. An obstacle also
// keeps a pod that was patched for another revision than that of the update, also if an undo has made its own the update revision. Where no
// new pod is admitted, it keeps every pod: which images the pod would get is not known.
func (r *PartitionBudget) holds(s *State) bool {
	switch {
	case s.Surge || s.Updated && !s.PartiallyPatched():
		return false
	case r.partition.Obstacle.Any():
		toAnother := len(s.Move.Back) > 0 && s.Move.Hash != s.UpdateHash
		return !s.PartiallyPatched() || toAnother || r.partition.Obstacle.Reason.Code == inplace.CodeNotAdmitted
	default:
		return s.Current && !s.PartiallyPatched()
	}
}

// Allows reports whether the pod may begin or continue its move.
func (r *PartitionBudget) Allows(s *State) bool { return !r.holds(s) || r.left > 0 }

// Take reports whether the pod may begin or continue its move, and if so counts it.
func (r *PartitionBudget) Take(s *State) bool {
	if !r.Allows(s) {
		return false
	}
	r.TakeAnyway(s)
	return true
}

// TakeAnyway counts a pod that can no longer stay at the partition.
func (r *PartitionBudget) TakeAnyway(s *State) {
	if r.holds(s) {
		r.left--
	}
}

// PullsOnly reports whether the partition keeps all pods, and is valid. Then their nodes pull images all the same, unless it is not known
// whether any pod will have them.
func (r PartitionBudget) PullsOnly() bool {
	return r.wanted > 0 && r.partition.Keeps(r.wanted) >= r.wanted && r.partition.Flaw() == "" && !r.partition.Obstacle.Any()
}

// PrePulls returns how many more nodes may have pre-pull pods, at most the given number. Pods that stay at the partition need none, unless
// it PullsOnly.
func (r PartitionBudget) PrePulls(most int, pods []*State) int {
	if r.partition.Keeps(r.wanted) == 0 || r.PullsOnly() {
		return most
	}
	for _, s := range pods {
		if readiness.Out(s.Pod) {
			r.Take(s)
		}
	}
	may := 0
	for _, s := range pods {
		if s.ToRestart() && !readiness.Out(s.Pod) && r.Take(s) {
			may++
		}
	}
	return min(most, may)
}

// Waits returns a message that the update waits only for the partition, with its progress; empty if it waits for anything else, or for
// nothing. ByWindow reports whether it is the window that it waits for.
func (r *PartitionBudget) Waits(pods []*State) (message string, byWindow bool) {
	kept := false
	for _, s := range pods {
		kept = kept || s.AtPartition
		if !s.AtPartition && !(s.Updated && s.Available && !s.PartiallyPatched()) {
			return "", false
		}
	}
	obstacle := r.partition.Obstacle
	if !kept || r.partition.Flaw() != "" || obstacle.Stalls {
		return "", false
	}
	message = fmt.Sprintf("waiting %s: %d of %d pods updated", r.at.Where(), r.updated, r.wanted)
	if obstacle.Any() {
		message += "; " + obstacle.String()
	}
	return message, r.at.ByWindow()
}

// Flaw returns a message that all pods stay as they are because the partition is not valid, or because of an obstacle that only the user
// can remove; empty if neither is why.
func (r *PartitionBudget) Flaw(pods []*State) string {
	for _, s := range pods {
		flaw := r.partition.Flaw()
		switch {
		case s.AtPartition && r.partition.Obstacle.Stalls:
			return "waiting: " + r.partition.Obstacle.String()
		case !s.AtPartition || flaw == "":
		case r.partition.ByWindow():
			return "waiting for a valid maintenance window: " + flaw
		default:
			return "waiting for a valid partition: " + flaw
		}
	}
	return ""
}

// Opens returns what the pods at the partition wait for if a window or an obstacle keeps them, as one clause; empty if neither does.
func (r *PartitionBudget) Opens() string {
	if obstacle := r.partition.Obstacle; obstacle.Stalls {
		return "you: " + obstacle.String()
	}
	return cmp.Or(r.at.Closed, r.at.WindowFlaw)
}
