package deployments

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// An update that has stalled is undone if inplace.LabelOnStall asks for that. One write gives the Deployment the template of the revision
// before, and notes which ReplicaSet was undone, so a leader that ends afterwards leaves nothing half-done: pods go back as after any undo.
//
// The template goes back at most once for each ReplicaSet. If another client, such as a GitOps tool, puts the undone template back, it
// stays. The way back is never undone either: its revision is one that pods had when the update began. So nothing goes to and fro.
//
// Only time counts in which the update depended on nothing but itself (engine.Unhindered). The status alone does not say that: the native
// controller keeps the time of the condition from one template to the next, and an update exceeds its deadline while a PodDisruptionBudget
// keeps its pods in service.
//
// Users who may create ReplicaSets do not choose that revision, although they write templates, numbers and marks: it must have existed when
// the update began, and be the only one that pods had then.
//
// The write fails if the Deployment is another one than the plan was made on. A user who edits in this moment, or takes the label away, is
// first.

// undoOnStall returns the step that undoes the update; or why it is not undone, although it has stalled and the label asks for that.
func (o *observed) undoOnStall() (*steps.UndoStalled, string) {
	if !o.Seen.Settings.UndoOnStall || o.sets.New == nil || !o.hasStalled() {
		return nil, ""
	}
	newRS := o.sets.New.Rs
	before, whyNot := o.revisionBefore(newRS)
	if whyNot = cmp.Or(whyNot, o.refusedUndo(newRS)); whyNot != "" {
		return nil, whyNot
	}
	why := fmt.Sprintf("label %s is %s, and the update has stalled: %s The template goes back to that of ReplicaSet %s",
		inplace.LabelOnStall, inplace.OnStallUndo, cmp.Or(o.Stalled(), TimedOut(newRS)), before.Name)
	if configurationOf(newRS) != configurationOf(before) {
		why += "; " + steps.FormerConfiguration
	}
	return &steps.UndoStalled{Deployment: o.Deployment, UpdateRevision: newRS.UID, Why: why,
		Operations: undoing(o.Deployment, newRS, before)}, ""
}

// configurationOf returns the mark of the last restart for changed configuration.
func configurationOf(rs *apps.ReplicaSet) string {
	return rs.Spec.Template.Annotations()[inplace.AnnotationConfiguration]
}

// hasStalled reports whether the status says that the deadline is exceeded, and will go on to say so, and the update has had that much
// time.
func (o *observed) hasStalled() bool {
	d := o.Deployment
	if o.update.Plan.Result.OnlyWaits || d.Status.ObservedGeneration < d.Generation || !o.formula().StaysOverdue() {
		return false
	}
	left := o.timeLeft()
	o.update.Plan.Again(left)
	return left == 0
}

// timeLeft returns how much of its deadline the update has not had yet.
func (o *observed) timeLeft() time.Duration {
	return o.Seen.Unhindered.Left(o.sets.New.Rs.UID, Deadline(o.Deployment), o.Seen.Now)
}

// Stalled returns why the update has stalled, one sentence; empty if it has not.
func (r Rollout) Stalled() string { return Stalled(r.Deployment, r.UpdateRevision()) }

// revisionBefore returns the ReplicaSet that pods had when the update began, or why the template cannot go back to it.
func (o *observed) revisionBefore(newRS *apps.ReplicaSet) (before *apps.ReplicaSet, whyNot string) {
	had := slices.DeleteFunc(slices.Clone(o.ReplicaSets), func(rs *apps.ReplicaSet) bool { return !currentIn(rs, newRS) })
	switch {
	case currentIn(newRS, newRS):
		return nil, "the update itself goes back to ReplicaSet " + newRS.Name
	case o.Deployment.Annotations[inplace.AnnotationUndone] == newRS.Name:
		return nil, "it was undone before, and the template of ReplicaSet " + newRS.Name + " was put back"
	case len(had) == 0:
		return nil, "no ReplicaSet is left that pods had when the update began"
	case len(had) > 1:
		return nil, fmt.Sprintf("pods had %d ReplicaSets when the update began, so nothing says which is right", len(had))
	}
	before = had[0]
	if back := edit.Compare(newRS.Spec.Template, before.Spec.Template, o.Seen.Rules); !goesBack(back) {
		return nil, "pods would be replaced on the way back to ReplicaSet " + before.Name + ": " +
			back.Reasons.And(back.LostTolerations...).String()
	}
	return before, ""
}

// goesBack reports whether running pods can take the change.
func goesBack(back edit.Change) bool { return back.InPlace() && len(back.LostTolerations) == 0 }

// currentIn reports whether pods had the ReplicaSet when the update to newRS began. Users who create a ReplicaSet may write the mark, but
// not the time of creation.
func currentIn(rs, newRS *apps.ReplicaSet) bool {
	updating := newRS.Labels[inplace.LabelUpdating]
	return revisions.IsCurrent(rs.Labels[inplace.LabelCurrent], updating) && !rs.CreationTimestamp.After(revisions.StartedAt(updating))
}

// refusedUndo returns why the API server has just not accepted the undo; empty if it has not been asked.
func (o *observed) refusedUndo(newRS *apps.ReplicaSet) string {
	refused := o.Seen.RefusedUndo
	if refused.Why == "" || refused.UpdateRevision != newRS.UID {
		return ""
	}
	o.update.Plan.Again(engine.UndoAgain)
	return "the API server does not accept it: " + refused.Why
}

// mayBeUndone reports whether the update must not end yet, because it is undone if its pods do not become available in time. The marks
// say which revision pods had before.
func (o *observed) mayBeUndone() bool {
	newRS := o.sets.New
	if !o.Seen.Settings.UndoOnStall || o.paused() || newRS.Available() >= o.sets.Wanted || currentIn(newRS.Rs, newRS.Rs) ||
		!HasDeadline(o.Deployment) {
		return false
	}
	if o.hasStalled() { // it is tried again
		return o.refusedUndo(newRS.Rs) != ""
	}
	return true
}

// undoing returns the patch that DeploymentRollbacker makes (kubectl/pkg/polymorphichelpers/rollback.go): the template without its hash,
// and annotations as they were, apart from Stayput's own.
func undoing(d *apps.Deployment, undone, before *apps.ReplicaSet) []jsonpatch.Operation {
	template := before.Spec.Template.Tree()
	delete(apps.Object(template, "metadata", "labels"), inplace.LabelTemplateHash)
	operations := patches.EntryOperations("annotations", d.Annotations, annotationsBack(d, undone, before))
	return patches.Guarded(d, append(operations, jsonpatch.NewOperation("replace", "/spec/template", template))...)
}

// ours is the prefix of Stayput's annotations: settings are not part of a revision, and the webhook writes the decision.
const ours = "stayput.dev/"

func annotationsBack(d *apps.Deployment, undone, before *apps.ReplicaSet) []patches.EntryChange {
	after := Undone(d.Annotations, before.Annotations)
	changes := []patches.EntryChange{{Key: inplace.AnnotationUndone, Value: undone.Name}}
	keys := slices.Concat(slices.Collect(maps.Keys(d.Annotations)), slices.Collect(maps.Keys(after)))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		if value, has := after[key]; !strings.HasPrefix(key, ours) {
			changes = append(changes, patches.EntryChange{Key: key, Value: value, Removing: !has})
		}
	}
	return changes
}
