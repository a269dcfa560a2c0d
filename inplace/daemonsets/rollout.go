package daemonsets

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

const (
	// labelUpdating is the mark on the update revision. No other revision of a DaemonSet is marked as updating.
	labelUpdating = inplace.LabelUpdating
)

// Rollout is one DaemonSet with everything that its update depends on. As for a deployments.Rollout, no object may be older than what the
// caller wrote itself.
type Rollout struct {
	DaemonSet *apps.DaemonSet
	// Revisions are those that the DaemonSet controls.
	Revisions []*apps.ControllerRevision
	// Seen is what was observed besides.
	Seen engine.Snapshot
	// HeldSince is the time from which on the caller has held deletions of this update; zero if it has not.
	HeldSince time.Time
}

// UpdateRevision returns the owned ControllerRevision with the DaemonSet's template. If there are several, it returns the newest, as
// natively: constructHistory and dedupCurHistories in pkg/controller/daemon/update.go. It returns nil as long as the DaemonSet controller
// has created none.
func (r Rollout) UpdateRevision() *apps.ControllerRevision {
	newestFirst := slices.SortedFunc(slices.Values(r.Revisions), func(a, b *apps.ControllerRevision) int {
		if a.Revision != b.Revision {
			return int(b.Revision - a.Revision)
		}
		return strings.Compare(a.Name, b.Name)
	})
	for _, revision := range newestFirst {
		if revision.Labels[inplace.LabelRevisionHash] != "" && revision.IsOf(r.DaemonSet.Spec.Template) {
			return revision
		}
	}
	return nil
}

// Decision returns whether Stayput makes the update, or the part of it that comes first.
func (r Rollout) Decision() steps.Decision {
	if r.untouched() {
		return steps.NativeDecision(r.Seen.Mode)
	}
	return r.planner().Decided
}

// Unfinished reports whether some pod that stays where it is does not have the update revision's identity yet.
func (r Rollout) Unfinished() bool { return r.planner().unfinished() }

// Started reports whether some pod has the update revision's identity already.
func (r Rollout) Started() bool {
	v := r.planner()
	return slices.ContainsFunc(v.pods, v.updated)
}

// workloadReason returns why the update cannot be made in place, whatever the templates are; nil if it can.
func (r Rollout) workloadReason(updateRevision *apps.ControllerRevision) *inplace.Reason {
	strategy := r.DaemonSet.Spec.UpdateStrategy
	switch {
	case !r.Seen.Mode.Manages():
		return r.Seen.Mode.Reason()
	case r.DaemonSet.DeletionTimestamp != nil:
		return &inplace.Reason{Code: inplace.CodeDeleting, Message: "the DaemonSet is being deleted"}
	case r.Seen.Unread != "":
		return &inplace.Reason{Code: inplace.CodeTooLarge, Message: r.Seen.Unread}
	case strategy.Type == appsv1.OnDeleteDaemonSetStrategyType:
		return &inplace.Reason{Code: inplace.CodeStrategy, Path: "/spec/updateStrategy/type",
			Message: "with strategy OnDelete the user decides when a pod is updated"}
	case r.DaemonSet.Surges():
		return &inplace.Reason{Code: inplace.CodeStrategy, Path: "/spec/updateStrategy/rollingUpdate/maxSurge",
			Message: "maxSurge asks for a new pod before the old one goes"}
	case updateRevision != nil && revisions.FellBack(updateRevision), r.Seen.FellBack(r.DaemonSet.Spec.Template):
		return &inplace.Reason{Code: inplace.CodeFellBack, Message: "the update fell back to the DaemonSet controller"}
	}
	return nil
}

// TemplateHash returns the hash by which a persisted fallback names the update: see revisions.Fallback.
func (r Rollout) TemplateHash() string { return r.DaemonSet.Spec.Template.Hash() }

// Updating reports whether the revision is marked as the update revision of an update that has begun.
func Updating(revision *apps.ControllerRevision) bool { return revisions.Updating(revision) }

// HoldsDeletion reports whether a DELETE of the pod by the DaemonSet controller is held, and why or why not. The pod, the other pods on its
// node, and the node must be as they are now. Pods elsewhere may be in an older state.
//
// The DaemonSet controller decides on caches. Its DELETE may be of a pod that has become one of the update revision meanwhile. So the
// deletion of a pod that needs no change is held as well, even after the update fell back. The controller takes a held pod as gone and does
// not try again. So whatever ends a hold must nudge it: an edit of the DaemonSet does, and so does LabelFallback.
//
// The controller does nothing to a DaemonSet that is being deleted (syncDaemonSet in pkg/controller/daemon/daemon_controller.go). If it
// still deletes a pod, it decided so before it saw the deletion, and with --cascade=orphan no controller would replace the pod. So such a
// deletion is held. No leader has to renew this hold. It keeps back nothing that a user wants, and the webhooks are not asked about
// deletions by other clients, such as the garbage collector.
func (r Rollout) HoldsDeletion(pod *corev1.Pod) (bool, inplace.Reason) {
	if !r.Seen.Mode.Manages() {
		return false, *r.Seen.Mode.Reason()
	}
	near := r.on(pod.Spec.NodeName).planner()
	m := near.daemonPod(pod)
	switch reason := r.workloadReason(near.updateRevision); {
	case m.housekeeping != nil:
		return false, *m.housekeeping
	case reason != nil && reason.Code == inplace.CodeDeleting:
		return true, *reason
	case reason != nil && reason.Code == inplace.CodeFellBack && near.updated(m):
		return true, inplace.Reason{Code: inplace.CodeFellBack, Message: "the pod has the update revision already"}
	case reason != nil:
		return false, *reason
	case !near.updated(m) && !r.holdLasts(near.updateRevision):
		return false, revisions.HoldExpired
	case m.WhyReplaced() == nil:
		return true, inplace.Reason{Message: "the pod is updated in place"}
	}
	// Only here do pods elsewhere matter. There may be thousands of them, and as many deletions to decide on.
	return r.holdsReplacement(m)
}

// holdsReplacement is HoldsDeletion for a pod that must be replaced. The replacement waits for the pods that need not be replaced: see
// othersFirst. The replacement of a pod that is not available does not wait, since such a pod uses up the budget of the pods that it would
// wait for. It may be Ready, and on its way to a revision that is gone.
func (r Rollout) holdsReplacement(m *daemonPod) (bool, inplace.Reason) {
	v := r.planner()
	switch {
	case v.Decided.Held && !v.partitionLeaves(m.Pod):
		return true, inplace.Reason{Message: "the pod stays at the partition"}
	case !m.Available:
	case v.othersFirst():
		return true, inplace.Reason{Message: "other pods of the DaemonSet are updated in place first"}
	case v.gateMoved(m):
		return true, inplace.Reason{Message: "the gate of another pod of the DaemonSet has just moved"}
	}
	return false, *m.WhyReplaced()
}

// HoldsCleanup reports whether a DELETE of the ControllerRevision by the DaemonSet controller is held, and why. That controller keeps the
// revision that it takes for the current one, and those that labels of pods name in its cache (cleanupHistory in
// pkg/controller/daemon/update.go). The label of a partially patched pod names no revision. Labels of other pods name a revision, or are
// about to, that the controller's cache does not show yet. Without their revision, these pods would have to be replaced.
func (r Rollout) HoldsCleanup(revision *apps.ControllerRevision) (bool, inplace.Reason) {
	if !r.Seen.Mode.Manages() {
		return false, *r.Seen.Mode.Reason()
	}
	v := r.planner()
	of := slices.IndexFunc(v.pods, func(m *daemonPod) bool { return m.revision != nil && m.revision.UID == revision.UID })
	switch {
	case !r.holdLasts(v.updateRevision):
		return false, revisions.HoldExpired
	case v.updateRevision != nil && v.updateRevision.UID == revision.UID:
		return true, inplace.Reason{Message: "the ControllerRevision has the template of the DaemonSet"}
	case revisions.Started(revision.Labels):
		return true, inplace.Reason{Message: "pods may be moving to the ControllerRevision"}
	case of >= 0:
		return true, inplace.Reason{Message: "pod " + v.pods[of].Pod.Name + " has the ControllerRevision"}
	}
	return false, inplace.Reason{Message: "no pod has the ControllerRevision"}
}

func (r Rollout) holdLasts(updateRevision *apps.ControllerRevision) bool {
	held := r.HeldSince
	if held.IsZero() {
		held = r.Seen.Now
	}
	var labels map[string]string
	if updateRevision != nil {
		labels = updateRevision.Labels
	}
	return revisions.HoldLasts(labels, held, r.Seen.Now)
}

// on returns the rollout with only the pods of one node.
func (r Rollout) on(node string) Rollout {
	r.Seen.Pods = slices.DeleteFunc(slices.Clone(r.Seen.Pods), func(pod *corev1.Pod) bool { return pod.Spec.NodeName != node })
	return r
}

// ClosedGates returns the names of the pods whose gates are closed.
func (r Rollout) ClosedGates() []string {
	var names []string
	for _, pod := range r.Seen.Pods {
		if readiness.Closed(pod) {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names
}

// gateMoved reports whether another pod may count as available although its gate is or was closed. The kubelet's report of the gate makes
// the native controller look again, and so does every nudge after the update fell back.
func (v *planner) gateMoved(but *daemonPod) bool {
	return slices.ContainsFunc(v.pods, func(m *daemonPod) bool {
		return m.Pod.UID != but.Pod.UID && podstate.GateUnseen(m.Pod, v.Seen.Now)
	})
}
