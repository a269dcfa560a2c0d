package statefulsets

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/controllerrevisions"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// Rollout is one StatefulSet with everything that its update depends on. As for a deployments.Rollout, no object may be older than what the
// caller wrote itself.
type Rollout struct {
	StatefulSet *apps.StatefulSet
	// Revisions are those that the StatefulSet controls.
	Revisions []*apps.ControllerRevision
	// Seen is what was observed besides. The label stayput.dev/partition says nothing of a StatefulSet.
	Seen engine.Snapshot
	// HeldSince is the time from which on the caller has held deletions of this update; zero if it has not.
	HeldSince time.Time
}

// UpdateRevision returns the owned ControllerRevision with the StatefulSet's template; nil as long as the StatefulSet controller has
// created none.
func (r Rollout) UpdateRevision() *apps.ControllerRevision {
	return controllerrevisions.UpdateRevision(r.Revisions, r.StatefulSet.Spec.Template, kind{}.PodLabel)
}

// rollout returns the rollout with its kind.
func (r Rollout) rollout() controllerrevisions.Rollout {
	r.Seen.Settings.Partition = ""
	return controllerrevisions.Rollout{Kind: kindOf(r), Revisions: r.Revisions, Seen: r.Seen, HeldSince: r.HeldSince}
}

// Decision returns whether Stayput makes the update, or the part of it that comes first.
func (r Rollout) Decision() steps.Decision { return r.rollout().Decision() }

// Plan returns the next steps. It has none for the status: after a refused DELETE the StatefulSet controller writes it as it is
// (performUpdate in pkg/controller/statefulset/stateful_set_control.go).
func (r Rollout) Plan() steps.Plan { return r.rollout().Plan() }

// FallBack returns the plan by which the update falls back to the StatefulSet controller.
func (r Rollout) FallBack(why inplace.Reason) steps.Plan { return r.rollout().FallBack(why) }

// Nudge returns the steps that nudge the StatefulSet controller in the middle of an update; none if there is nothing to update.
func (r Rollout) Nudge() []steps.Step { return r.rollout().Nudge() }

// PodProgress returns what users need to know of each live pod, highest ordinal first.
func (r Rollout) PodProgress() []podstate.PodProgress { return r.rollout().PodProgress() }

// Unfinished reports whether some pod that the StatefulSet controller would update does not have the update revision's identity yet.
func (r Rollout) Unfinished() bool { return r.rollout().Unfinished() }

// Started reports whether some pod has the update revision's identity already.
func (r Rollout) Started() bool { return r.rollout().Started() }

// TemplateHash returns the hash by which a persisted fallback names the update: see revisions.Fallback.
func (r Rollout) TemplateHash() string { return r.StatefulSet.Spec.Template.Hash() }

// HoldsDeletion reports whether a DELETE of the pod by the StatefulSet controller is held, and why or why not. The StatefulSet and its pods
// must be as they are now.
func (r Rollout) HoldsDeletion(pod *corev1.Pod) (bool, inplace.Reason) {
	if !r.Seen.Mode.Manages() {
		return false, *r.Seen.Mode.Reason()
	}
	return r.rollout().HoldsDeletion(pod, r.rollout)
}

// HoldsCleanup reports whether a DELETE of the ControllerRevision by the StatefulSet controller is held, and why.
func (r Rollout) HoldsCleanup(revision *apps.ControllerRevision) (bool, inplace.Reason) {
	return r.rollout().HoldsCleanup(revision)
}

// DecideEdit returns what an edit of the template does to pods. The template before is the one before the edit.
func (r Rollout) DecideEdit(before apps.Template) steps.EditDecision {
	r.Seen.Settings.Partition = ""
	decided := r.Seen.DecideEdit(before, r.StatefulSet.Spec.Template, r.Decision)
	if revision := r.UpdateRevision(); revision != nil {
		decided.Undo = revisions.Undoes(revision, r.Revisions)
	}
	return decided
}

// Preview returns what happens to the pods if the StatefulSet, which is not stored yet, replaces the one with the template before.
func (r Rollout) Preview(before apps.Template) steps.Preview {
	pods := r.StatefulSet.Replicas()
	kept := min(max(r.StatefulSet.Partition()-r.StatefulSet.FirstOrdinal(), 0), pods)
	preview := steps.Preview{EditDecision: r.DecideEdit(before), Pods: pods, AtPartition: kept}
	preview.AtATime = min(r.StatefulSet.MaxUnavailable(), preview.Moving())
	return preview
}

// WhyNative returns why no update of the StatefulSet is made in place, whatever its templates and pods are; nil if one may be.
func (r Rollout) WhyNative() *inplace.Reason { return r.rollout().WhyNative() }

// Progress returns a text that is another one when Stayput has moved a pod, or the user has edited the StatefulSet.
func (r Rollout) Progress() string {
	moved := fmt.Sprint(r.StatefulSet.Generation)
	for _, pod := range slices.SortedFunc(slices.Values(r.Seen.Pods), kindOf(r).Compare) {
		moved += fmt.Sprint(" ", pod.Name, pod.UID, pod.Labels[inplace.LabelRevisionHash], readiness.Closed(pod))
	}
	return moved
}
