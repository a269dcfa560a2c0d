package daemonsets

import (
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/steps"
)

// Preview returns what happens to the pods if the DaemonSet, which is not stored yet, replaces the one with the template before. It uses
// the counts of the native controller's status, and needs no nodes.
func (r Rollout) Preview(before apps.Template) steps.Preview {
	pods := int(r.DaemonSet.Status.DesiredNumberScheduled)
	decided := r.Seen.DecideEdit(before, r.DaemonSet.Spec.Template, r.Decision)
	preview := steps.Preview{EditDecision: decided, Pods: pods, AtPartition: r.Seen.Settings.Partition.Keeps(pods)}
	preview.AtATime = min(r.DaemonSet.MaxUnavailable(pods), preview.Moving())
	return preview
}
