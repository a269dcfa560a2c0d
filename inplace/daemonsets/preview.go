package daemonsets

import (
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/steps"
)

// Preview is what becomes of the pods if the DaemonSet, which is not stored yet, takes the place of the one with the template before. It goes
// by what the native controller counts, and needs no nodes.
func (r Rollout) Preview(before apps.Template) steps.Preview {
	pods := int(r.DaemonSet.Status.DesiredNumberScheduled)
	decided := steps.DecideEdit(edit.Compare(before, r.DaemonSet.Spec.Template, r.Rules), r.Mode, r.Settings.Partition, r.Decision)
	preview := steps.Preview{EditDecision: decided, Pods: pods, AtPartition: r.Settings.Partition.Keeps(pods)}
	preview.AtATime = min(r.DaemonSet.MaxUnavailable(pods), preview.Moving())
	return preview
}
