package controllerrevisions

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/revisions"
)

// HoldsDeletion reports whether a DELETE of the pod by the native controller is held, and why or why not. The pods that the planner has
// must be as they are now. Whole returns a planner with all pods, for which older states suffice; it is asked only about a pod that must be
// replaced. HeldSince is the time from which on the caller has held writes of this update; zero if it has not.
//
// The native controller decides on caches. Its DELETE may be of a pod that has become one of the update revision meanwhile. So the deletion
// of a pod that needs no change is held as well, even after the update fell back.
//
// The controller does nothing to a workload that is being deleted. If it still deletes a pod, it decided so before it saw the deletion, and
// with --cascade=orphan no controller would replace the pod. So such a deletion is held. No leader has to renew this hold. It keeps back
// nothing that a user wants, and the webhooks are not asked about deletions by other clients, such as the garbage collector.
func (v *Planner) HoldsDeletion(pod *corev1.Pod, heldSince time.Time, whole func() *Planner) (bool, inplace.Reason) {
	m := v.Pod(pod)
	switch reason := v.WhyNative(); {
	case m.Housekeeping != nil:
		return false, *m.Housekeeping
	case reason != nil && reason.Code == inplace.CodeDeleting:
		return true, *reason
	case reason != nil && reason.Code == inplace.CodeFellBack && m.Updated:
		return true, inplace.Reason{Code: inplace.CodeFellBack, Message: "the pod has the update revision already"}
	case reason != nil:
		return false, *reason
	case !m.Updated && !v.HoldLasts(heldSince):
		return false, revisions.HoldExpired
	case m.WhyReplaced() == nil:
		return true, inplace.Reason{Message: "the pod is updated in place"}
	}
	if why := v.kind.ReplacementWaits(whole(), m); why != "" {
		return true, inplace.Reason{Message: why}
	}
	return false, *m.WhyReplaced()
}

// HoldsCleanup reports whether a DELETE of the ControllerRevision by the native controller is held, and why. That controller keeps the
// revision that it takes for the current one, and those that labels of pods name in its cache (cleanupHistory in
// pkg/controller/daemon/update.go, truncateHistory in pkg/controller/statefulset/stateful_set_control.go). The label of a partially patched
// pod names no revision. Labels of other pods name a revision, or are about to, that the controller's cache does not show yet. Without
// their revision, these pods would have to be replaced. HeldSince is the time from which on the caller has held writes of this update; zero
// if it has not.
func (v *Planner) HoldsCleanup(revision *apps.ControllerRevision, heldSince time.Time) (bool, inplace.Reason) {
	if !v.seen.Mode.Manages() {
		return false, *v.seen.Mode.Reason()
	}
	of := slices.IndexFunc(v.Live, func(m *Pod) bool { return m.revision != nil && m.revision.object.UID == revision.UID })
	switch {
	case !v.HoldLasts(heldSince):
		return false, revisions.HoldExpired
	case v.updateUID() == revision.UID:
		return true, inplace.Reason{Message: "the ControllerRevision has the template of the " + v.Update.Workload.Kind}
	case revisions.Started(revision.Labels):
		return true, inplace.Reason{Message: "pods may be moving to the ControllerRevision"}
	case of >= 0:
		return true, inplace.Reason{Message: "pod " + v.Live[of].Pod.Name + " has the ControllerRevision"}
	}
	return false, inplace.Reason{Message: "no pod has the ControllerRevision"}
}

// HoldLasts reports whether writes of this update may still be held: see revisions.HoldLasts.
func (v *Planner) HoldLasts(heldSince time.Time) bool {
	if heldSince.IsZero() {
		heldSince = v.seen.Now
	}
	var labels map[string]string
	if v.UpdateRevision != nil {
		labels = v.UpdateRevision.Labels
	}
	return revisions.HoldLasts(labels, heldSince, v.seen.Now)
}

// GateMoved reports whether another pod may count as available although its gate is or was closed. The kubelet's report of the gate makes
// the native controller look again, and so does every nudge after the update fell back.
func (v *Planner) GateMoved(but *Pod) bool {
	return slices.ContainsFunc(v.Live, func(m *Pod) bool {
		return m.Pod.UID != but.Pod.UID && podstate.GateUnseen(m.Pod, v.seen.Now)
	})
}
