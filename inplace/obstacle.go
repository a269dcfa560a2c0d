package inplace

import "slices"

// An update that is made in place falls back when that turns out to be impossible: then pods are replaced. While the user wants no pod to
// be replaced, it waits instead, and says why and what ends that. This is decided here alone, for all kinds and all reasons: see
// Partition.Instead. The update then is one at a partition that keeps all pods, whatever else the partition says. So scaling, the status,
// and all that a partition leaves alone go on, and native writes are held as at any partition.

// Obstacle is why an update in place does not go on, while it waits instead of falling back. The zero Obstacle is none.
type Obstacle struct {
	Reason Reason
	// OnlyInPlace: the mode lets no pod be replaced. Otherwise pods may be replaced once the window opens, or the partition is lowered.
	OnlyInPlace bool
	// Stalls: neither a window nor the partition is what the update waits for. Only the user ends that.
	Stalls bool
}

// notAwaited are the codes of reasons for which no update waits. Stayput does not manage the workload, or cannot, or the update fell back
// before. Or the strategy is another one, or a LeaderWorkerSet's: there other controllers create pods, which is never held.
var notAwaited = []string{CodeMode, CodeDeleting, CodeUninstalled, CodeTooLarge, CodeFellBack, CodeStrategy, CodeGroups,
	CodeCannotCreate, CodeUnbalanced}

// Instead returns the partition of an update of that many pods which, for that reason, cannot go on in place, and waits instead of falling
// back: the mode is ModeInPlaceOnly, a maintenance window is closed, or the partition keeps all pods. It returns false if the update falls
// back.
func (p Partition) Instead(why Reason, mode Mode, pods int) (Partition, bool) {
	only, keepsAll := mode == ModeInPlaceOnly, pods > 0 && p.Keeps(pods) >= pods
	if slices.Contains(notAwaited, why.Code) || !only && !keepsAll {
		return p, false
	}
	p.Obstacle = Obstacle{Reason: why, OnlyInPlace: only, Stalls: !keepsAll}
	return p, true
}

// Any reports whether there is an obstacle.
func (o Obstacle) Any() bool { return o.Reason.Code != "" }

// String returns what becomes of the pods, what to do, and why, in one clause.
func (o Obstacle) String() string {
	if o.OnlyInPlace {
		return "no pod is replaced, because label " + LabelUpdate + " is " + string(ModeInPlaceOnly) + "; " + o.do() + ": " + o.Reason.Message
	}
	return "pods may be replaced after that, unless you edit the template again or undo it: " + o.Reason.Message
}

// do returns what the user can do where no pod is replaced.
func (o Obstacle) do() string {
	label := "set the label to " + string(ModeInPlace)
	if o.Reason.Code == CodeRevisionGone { // no edit tells what such a pod has
		return "delete the pod, or " + label
	}
	return "edit the template again, undo it, or " + label
}
