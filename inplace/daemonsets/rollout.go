package daemonsets

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/controllerrevisions"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
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

// UpdateRevision returns the owned ControllerRevision with the DaemonSet's template; nil as long as the DaemonSet controller has created
// none.
func (r Rollout) UpdateRevision() *apps.ControllerRevision {
	return controllerrevisions.UpdateRevision(r.Revisions, r.DaemonSet.Spec.Template, kind{}.PodLabel)
}

// rollout returns the rollout with its kind.
func (r Rollout) rollout() controllerrevisions.Rollout {
	return controllerrevisions.Rollout{Kind: kindOf(r), Revisions: r.Revisions, Seen: r.Seen, HeldSince: r.HeldSince}
}

// Decision returns whether Stayput makes the update, or the part of it that comes first.
func (r Rollout) Decision() steps.Decision { return r.rollout().Decision() }

// Plan returns the next steps.
//
// It has no step for the status. A denied DELETE is no error to the DaemonSet controller, which goes on counting pods by their hash label
// and writes the status itself (syncDaemonSet in pkg/controller/daemon/daemon_controller.go).
func (r Rollout) Plan() steps.Plan { return r.rollout().Plan() }

// FallBack returns the plan by which the update falls back to the DaemonSet controller.
func (r Rollout) FallBack(why inplace.Reason) steps.Plan { return r.rollout().FallBack(why) }

// Nudge returns the steps that nudge the DaemonSet controller in the middle of an update; none if there is nothing to update.
func (r Rollout) Nudge() []steps.Step { return r.rollout().Nudge() }

// PodProgress returns what users need to know of each live pod, by name.
func (r Rollout) PodProgress() []podstate.PodProgress { return r.rollout().PodProgress() }

// Unfinished reports whether some pod that stays where it is does not have the update revision's identity yet.
func (r Rollout) Unfinished() bool { return r.rollout().Unfinished() }

// Started reports whether some pod has the update revision's identity already.
func (r Rollout) Started() bool { return r.rollout().Started() }

// TemplateHash returns the hash by which a persisted fallback names the update: see revisions.Fallback.
func (r Rollout) TemplateHash() string { return r.DaemonSet.Spec.Template.Hash() }

// HoldsDeletion reports whether a DELETE of the pod by the DaemonSet controller is held, and why or why not. The pod, the other pods on its
// node, and the node must be as they are now. Pods elsewhere may be in an older state: there may be thousands of them, and as many
// deletions to decide on.
//
// The controller takes a held pod as gone and does not try again. So whatever ends a hold must nudge it: an edit of the DaemonSet does, and
// so does LabelRenewed.
func (r Rollout) HoldsDeletion(pod *corev1.Pod) (bool, inplace.Reason) {
	if !r.Seen.Mode.Manages() {
		return false, *r.Seen.Mode.Reason()
	}
	return r.on(pod.Spec.NodeName).rollout().HoldsDeletion(pod, r.rollout)
}

// HoldsCleanup reports whether a DELETE of the ControllerRevision by the DaemonSet controller is held, and why.
func (r Rollout) HoldsCleanup(revision *apps.ControllerRevision) (bool, inplace.Reason) {
	return r.rollout().HoldsCleanup(revision)
}

// on returns the rollout with only one node and the pods there.
func (r Rollout) on(node string) Rollout {
	if r.Seen.Nodes != nil { // nil means that no node is known
		r.Seen.Nodes = slices.DeleteFunc(slices.Clone(r.Seen.Nodes), func(each *corev1.Node) bool { return each.Name != node })
	}
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
