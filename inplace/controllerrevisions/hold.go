package controllerrevisions

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/revisions"
)

// HoldsDeletion reports whether a DELETE of the pod by the native controller is held, and why or why not. The workload, the pod, and what
// is beside it (Kind.Beside) must be as they are now. Other pods and nodes may be in an older state: there may be thousands of them, and as
// many deletions to decide on. They are looked at only where the pod must be replaced.
//
// Where the native controller takes a held pod as gone, it does not try again. So whatever ends a hold must nudge it: an edit of the
// workload does, and so does LabelRenewed.
//
// The native controller decides on caches. Its DELETE may be of a pod that has become one of the update revision meanwhile. So the deletion
// of a pod that needs no change is held as well, even after the update fell back.
//
// The controller does nothing to a workload that is being deleted. If it still deletes a pod, it decided so before it saw the deletion, and
// with --cascade=orphan no controller would replace the pod. So such a deletion is held. No leader has to renew this hold. It keeps back
// nothing that a user wants, and the webhooks are not asked about deletions by other clients, such as the garbage collector.
func (r Rollout) HoldsDeletion(pod *corev1.Pod) (bool, inplace.Reason) {
	if !r.Seen.Mode.Manages() {
		return false, *r.Seen.Mode.Reason()
	}
	if kept := r.Kind.Workload().Kept; kept != nil {
		return false, *kept // the native controller deletes no pod for an update
	}
	beside := r
	beside.Seen = r.Kind.Beside(pod, r.Seen)
	o := beside.observed()
	m := o.pod(pod)
	switch reason := o.whyNative(); {
	case m.Housekeeping != "":
		return false, inplace.Reason{Code: inplace.CodeHousekeeping, Message: m.Housekeeping}
	case reason != nil && reason.Code == inplace.CodeDeleting:
		return true, *reason
	case reason != nil && reason.Code == inplace.CodeFellBack && m.Updated:
		return true, inplace.Reason{Code: inplace.CodeFellBack, Message: "the pod has the update revision already"}
	case reason != nil:
		return false, *reason
	case !m.Updated && !o.holdLasts(r.HeldSince):
		return false, revisions.HoldExpired
	case m.WhyReplaced() == nil:
		return true, inplace.Reason{Message: "the pod is updated in place"}
	}
	among := r.observed()
	if among.stays(m) {
		return true, inplace.Reason{Message: "no pod is replaced for this update for now: " + m.WhyReplaced().Message}
	}
	if why := r.Kind.ReplacementWaits(Replacement{Pod: m, among: among}); why != "" {
		return true, inplace.Reason{Message: why}
	}
	return false, *m.WhyReplaced()
}

// HoldsCleanup reports whether a DELETE of the ControllerRevision by the native controller is held, and why. That controller keeps the
// revision that it takes for the current one, and those that labels of pods name in its cache (cleanupHistory in
// pkg/controller/daemon/update.go, truncateHistory in pkg/controller/statefulset/stateful_set_control.go). The label of a partially patched
// pod names no revision. Labels of other pods name a revision, or are about to, that the controller's cache does not show yet. Without
// their revision, these pods would have to be replaced. With strategy OnDelete, where no controller replaces them, they would be stuck.
func (r Rollout) HoldsCleanup(revision *apps.ControllerRevision) (bool, inplace.Reason) {
	if !r.Seen.Mode.Manages() {
		return false, *r.Seen.Mode.Reason()
	}
	o := r.observed()
	of := slices.IndexFunc(o.live, func(m *Pod) bool { return m.revision != nil && m.revision.object.UID == revision.UID })
	switch {
	case !o.holdLasts(r.HeldSince):
		return false, revisions.HoldExpired
	case o.updateUID() == revision.UID:
		return true, inplace.Reason{Message: "the ControllerRevision has the template of the " + o.update.Workload.Kind}
	case revisions.Started(revision.Labels):
		return true, inplace.Reason{Message: "pods may be moving to the ControllerRevision"}
	case of >= 0:
		return true, inplace.Reason{Message: "pod " + o.live[of].Pod.Name + " has the ControllerRevision"}
	}
	return false, inplace.Reason{Message: "no pod has the ControllerRevision"}
}

// holdLasts reports whether writes of this update may still be held: see revisions.HoldLasts.
func (o *observed) holdLasts(heldSince time.Time) bool {
	var labels map[string]string
	if by := revisions.HeldBy(o.updateRevision, o.owned, o.seen.Now); by != nil {
		labels = by.Labels
	}
	return revisions.HoldLasts(labels, cmp.Or(heldSince, o.seen.Now), o.seen.Now)
}

// Replacement is a pod that cannot be updated in place, and that the native controller wants to replace now.
type Replacement struct {
	*Pod
	among *observed
}

// Held reports whether Stayput updates other pods in place.
func (r Replacement) Held() bool { return r.among.update.Decided.Held }

// HasTurn reports whether the pod is one of those that may begin: see Kind.Next.
func (r Replacement) HasTurn() bool {
	return slices.ContainsFunc(r.among.next(), func(m *Pod) bool { return m.Pod.UID == r.Pod.Pod.UID })
}

// AtPartition reports whether the partition budget allows no other pod in place of this one.
func (r Replacement) AtPartition() bool {
	partition := r.among.update.Partition
	for _, m := range r.among.next() {
		if takes := partition.Take(&m.State); m.Pod.UID == r.Pod.Pod.UID {
			return !takes
		}
	}
	return false
}

// OthersFirst reports whether some pod is to be updated in place before any pod is replaced. A replacement does not wait for pods at the
// partition. Nor does a pod whose resize is infeasible wait for another pod that must be replaced: that could last for ever.
func (r Replacement) OthersFirst() bool {
	return slices.ContainsFunc(r.among.pending, func(m *Pod) bool {
		return m.WhyReplaced() == nil && !m.AtPartition && r.among.update.Reachable(m.Pod)
	})
}
