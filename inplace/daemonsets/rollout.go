package daemonsets

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/prepull"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/serving"
	"github.com/stayput/stayput/inplace/steps"
)

const (
	// labelUpdating is the mark of an update's target: nothing settles in a DaemonSet.
	labelUpdating = inplace.LabelUpdating
)

// Rollout is one DaemonSet with everything an update of it depends on. As for a deployments.Rollout, no object may be older than what
// the caller wrote itself.
type Rollout struct {
	DaemonSet *apps.DaemonSet
	// Revisions are those the DaemonSet controls.
	Revisions []*apps.ControllerRevision
	// Pods are those the DaemonSet controls, terminating ones too.
	Pods []*corev1.Pod
	// Nodes are all of the cluster; nil if the caller knows none, so that pods are taken to be where they should.
	Nodes []*corev1.Node
	Pull  prepull.Pulling
	// DryRun: as for a deployments.Rollout.
	DryRun   dryrun.Result
	Mode     inplace.Mode
	Settings inplace.Settings
	Rules    inplace.Rules
	Now      time.Time
	// HeldSince is since when the caller has held deletions of this update; zero if it has not.
	HeldSince time.Time
	// PersistedFallback, Unread, Endpoints and Ahead: as for a deployments.Rollout.
	PersistedFallback string
	Unread            string
	Endpoints         serving.Endpoints
	Ahead             readiness.Ahead
}

// UpdateRevision returns the owned ControllerRevision with the DaemonSet's template, the newest if there are several, as natively:
// constructHistory and dedupCurHistories in pkg/controller/daemon/update.go. Nil as long as that controller has made none.
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

// Decision reports whether Stayput makes the update, or as much of it as comes first.
func (r Rollout) Decision() steps.Decision {
	if r.untouched() {
		return steps.NativeDecision(r.Mode)
	}
	return r.planner().decided
}

// Unfinished reports whether some pod that stays where it is has not the target's identity yet.
func (r Rollout) Unfinished() bool { return r.planner().unfinished() }

// Started reports whether some pod has the target's identity already.
func (r Rollout) Started() bool {
	v := r.planner()
	return slices.ContainsFunc(v.members, v.updated)
}

// workloadReason is what stands against an update in place whatever the templates are; nil if nothing does.
func (r Rollout) workloadReason(updateRevision *apps.ControllerRevision) *inplace.Reason {
	strategy := r.DaemonSet.Spec.UpdateStrategy
	switch {
	case !r.Mode.Manages():
		return r.Mode.Reason()
	case r.DaemonSet.DeletionTimestamp != nil:
		return &inplace.Reason{Code: inplace.CodeDeleting, Message: "the DaemonSet is being deleted"}
	case r.Unread != "":
		return &inplace.Reason{Code: inplace.CodeTooLarge, Message: r.Unread}
	case strategy.Type == appsv1.OnDeleteDaemonSetStrategyType:
		return &inplace.Reason{Code: inplace.CodeStrategy, Path: "/spec/updateStrategy/type", Message: "strategy OnDelete leaves it to people when a pod is updated"}
	case r.DaemonSet.Surges():
		return &inplace.Reason{Code: inplace.CodeStrategy, Path: "/spec/updateStrategy/rollingUpdate/maxSurge", Message: "maxSurge asks for a new pod before the old one goes"}
	case updateRevision != nil && revisions.FellBack(updateRevision), r.fallbackPersisted():
		return &inplace.Reason{Code: inplace.CodeFellBack, Message: "the update fell back to the DaemonSet controller"}
	}
	return nil
}

func (r Rollout) fallbackPersisted() bool {
	return r.DaemonSet.Spec.Template.IsPersisted(r.PersistedFallback)
}

// TemplateHash is by what a record knows the update again: see revisions.Record.
func (r Rollout) TemplateHash() string { return r.DaemonSet.Spec.Template.Hash() }

// Updating reports whether the revision is marked as the target of an update that has begun.
func Updating(revision *apps.ControllerRevision) bool { return revisions.Updating(revision) }

// HoldsDeletion reports whether a DELETE of the pod by the DaemonSet controller is held, and why or why not. The pod must be
// as it is now, the others on its node and the node too; of pods elsewhere an older state will do.
//
// That controller decides on caches: a DELETE can be of a pod that has become one of the target meanwhile, so a pod that needs
// no change is held as well, even after a release. And it takes a held pod as gone without trying again, so what ends a hold has
// to wake it: an edit of the DaemonSet does, and so does LabelReleased.
//
// To a DaemonSet that is being deleted it does nothing (syncDaemonSet in pkg/controller/daemon/daemon_controller.go): what it deletes all the same
// it has decided before it knew, and with --cascade=orphan nobody would replace the pod. So that is held, and nobody has to tend it: nothing that
// anybody wants is kept back, and whoever else deletes, such as the garbage collector, is not asked.
func (r Rollout) HoldsDeletion(pod *corev1.Pod) (bool, inplace.Reason) {
	if !r.Mode.Manages() {
		return false, *r.Mode.Reason()
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
	return r.holdsReplacement(m) // only here do pods elsewhere matter: there may be thousands, and as many deletions to judge
}

// holdsReplacement is HoldsDeletion for a pod that must be replaced. It waits for those that need not be: see othersFirst. One that is not available
// does not, since it takes up the budget of those that it would wait for: it may be Ready, and on its way to a revision that is gone.
func (r Rollout) holdsReplacement(m *daemonPod) (bool, inplace.Reason) {
	v := r.planner()
	v.applyPartition()
	switch {
	case v.decided.Held && !v.partitionLeaves(m.Pod):
		return true, inplace.Reason{Message: "a partition keeps the pod"}
	case !m.Available:
	case v.othersFirst():
		return true, inplace.Reason{Message: "other pods of the DaemonSet are updated in place first"}
	case v.gateMoved(m):
		return true, inplace.Reason{Message: "the gate of another pod of the DaemonSet has just moved"}
	}
	return false, *m.WhyReplaced()
}

// HoldsCleanup reports whether a DELETE of the ControllerRevision by the DaemonSet controller is held, and why. That controller keeps the one that it
// takes for the current one, and those that labels of pods name in its cache (cleanupHistory in pkg/controller/daemon/update.go). The label of a pod that
// is half-way names none; others are of a revision, or about to be, that its cache does not show yet. Without their revision they would have to be replaced.
func (r Rollout) HoldsCleanup(revision *apps.ControllerRevision) (bool, inplace.Reason) {
	if !r.Mode.Manages() {
		return false, *r.Mode.Reason()
	}
	v := r.planner()
	of := slices.IndexFunc(v.members, func(m *daemonPod) bool { return m.revision != nil && m.revision.UID == revision.UID })
	switch {
	case !r.holdLasts(v.updateRevision):
		return false, revisions.HoldExpired
	case v.updateRevision != nil && v.updateRevision.UID == revision.UID:
		return true, inplace.Reason{Message: "the ControllerRevision has the template of the DaemonSet"}
	case revisions.Started(revision.Labels):
		return true, inplace.Reason{Message: "pods may be on their way to the ControllerRevision"}
	case of >= 0:
		return true, inplace.Reason{Message: "pod " + v.members[of].Pod.Name + " is of the ControllerRevision"}
	}
	return false, inplace.Reason{Message: "no pod is of the ControllerRevision"}
}

func (r Rollout) holdLasts(updateRevision *apps.ControllerRevision) bool {
	held := r.HeldSince
	if held.IsZero() {
		held = r.Now
	}
	var labels map[string]string
	if updateRevision != nil {
		labels = updateRevision.Labels
	}
	return revisions.HoldLasts(labels, held, r.Now)
}

// on is the rollout with the pods of one node only.
func (r Rollout) on(node string) Rollout {
	r.Pods = slices.DeleteFunc(slices.Clone(r.Pods), func(pod *corev1.Pod) bool { return pod.Spec.NodeName != node })
	return r
}

// ClosedGates names the pods whose gates are closed.
func (r Rollout) ClosedGates() []string {
	var names []string
	for _, pod := range r.Pods {
		if readiness.Closed(pod) {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names
}

// gateMoved: another pod may count as available although its gate is or was closed. The kubelet's report of that wakes the native
// controller, and so does every touch of a released target.
func (v *planner) gateMoved(but *daemonPod) bool {
	return slices.ContainsFunc(v.members, func(m *daemonPod) bool {
		return m.Pod.UID != but.Pod.UID && podstate.GateUnseen(m.Pod, v.Now)
	})
}
