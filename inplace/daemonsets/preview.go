package daemonsets

import (
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// DecideEdit returns what an edit of the template does to pods. The template before is the one before the edit.
func (r Rollout) DecideEdit(before apps.Template) steps.EditDecision {
	decided := r.Seen.DecideEdit(before, r.DaemonSet.Spec.Template, r.Decision)
	if revision := r.UpdateRevision(); revision != nil {
		decided.Undo = revisions.Undoes(revision, r.Revisions)
	}
	return decided
}

// Preview returns what happens to the pods if the DaemonSet, which is not stored yet, replaces the one with the template before. It uses
// the counts of the native controller's status, and needs no nodes.
func (r Rollout) Preview(before apps.Template) steps.Preview {
	pods := int(r.DaemonSet.Status.DesiredNumberScheduled)
	decided := r.DecideEdit(before)
	preview := steps.Preview{EditDecision: decided, Pods: pods, AtPartition: r.Seen.Settings.Partition.Keeps(pods)}
	preview.AtATime = min(r.DaemonSet.MaxUnavailable(pods), preview.Moving())
	return preview
}

// WhyNative returns why no update of the DaemonSet is made in place, whatever its templates and pods are; nil if one may be.
func (r Rollout) WhyNative() *inplace.Reason { return r.rollout().WhyNative() }
