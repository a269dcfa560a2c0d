package deployments

import (
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// Forecast is what becomes of the pods if the Deployment, which is not stored yet, takes the place of the one with the template before. Pods
// are not needed.
func (r Rollout) Forecast(before apps.Template) steps.Forecast {
	v, template := r.View(), r.Deployment.Spec.Template
	v.whyAlone = readiness.WhyAlone(template.Decoded().Spec, r.Rehearsal.Claim) // there need not be a target yet
	judged := steps.Judge(edit.Compare(before, template, r.Rules), r.Mode, r.Settings.Partition, r.Verdict)
	forecast := steps.Forecast{Judgement: judged, Pods: v.desired(), Kept: v.keeps}
	forecast.AtATime = min(v.mayMiss(), forecast.Moving())
	if v.borrowing() {
		forecast.Borrowed = min(int(r.Deployment.MaxSurge()), forecast.Moving())
		forecast.AtATime = forecast.Borrowed
	}
	return forecast
}
