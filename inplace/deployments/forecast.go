package deployments

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// Judge says what the edit of the template that was before does to pods.
func (r Rollout) Judge(before apps.Template) steps.Judgement {
	judged := steps.Judge(edit.Compare(before, r.Deployment.Spec.Template, r.Rules), r.Mode, r.Settings.Partition, r.Verdict)
	deadline := r.Deployment.Spec.ProgressDeadlineSeconds
	if judged.Change.Restarts() && deadline != nil && *deadline != math.MaxInt32 {
		grace := readiness.GracePeriod(&corev1.Pod{Spec: r.Deployment.Spec.Template.Decoded().Spec})
		judged.Deadline = steps.AboutDeadline(r.Settings.Drain, grace, time.Duration(*deadline)*time.Second)
	}
	return judged
}

// Forecast is what becomes of the pods if the Deployment, which is not stored yet, takes the place of the one with the template before. Pods
// are not needed.
func (r Rollout) Forecast(before apps.Template) steps.Forecast {
	v, template := r.View(), r.Deployment.Spec.Template
	v.whyAlone = readiness.WhyAlone(template.Decoded().Spec, r.Rehearsal.Claim) // there need not be a target yet
	forecast := steps.Forecast{Judgement: r.Judge(before), Pods: v.desired(), Kept: v.keeps}
	forecast.AtATime = min(v.mayMiss(), forecast.Moving())
	if v.borrowing() {
		forecast.Borrowed = min(int(r.Deployment.MaxSurge()), forecast.Moving())
		forecast.AtATime = forecast.Borrowed
	}
	return forecast
}
