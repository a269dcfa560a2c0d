package daemonsets

import (
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/steps"
)

// Forecast is what becomes of the pods if the DaemonSet, which is not stored yet, takes the place of the one with the template before. It goes
// by what the native controller counts, and needs no nodes.
func (r DaemonRollout) Forecast(before apps.Template) steps.Forecast {
	pods := int(r.DaemonSet.Status.DesiredNumberScheduled)
	judged := steps.Judge(edit.Compare(before, r.DaemonSet.Spec.Template, r.Rules), r.Mode, r.Settings.Partition, r.Verdict)
	forecast := steps.Forecast{Judgement: judged, Pods: pods, Kept: r.Settings.Partition.Keeps(pods)}
	forecast.AtATime = min(r.DaemonSet.MaxUnavailable(pods), forecast.Moving())
	return forecast
}
