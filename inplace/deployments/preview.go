package deployments

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// DecideEdit returns what an edit of the template does to pods. The template before is the one before the edit.
func (r Rollout) DecideEdit(before apps.Template) steps.EditDecision {
	decided := r.Seen.DecideEdit(before, r.workload(), r.mostSurge(), r.Decision)
	if newRS := r.UpdateRevision(); newRS != nil {
		decided.Undo = revisions.Undoes(newRS, r.ReplicaSets)
	}
	if decided.Change.Restarts() && HasDeadline(r.Deployment) {
		grace := readiness.GracePeriod(&corev1.Pod{Spec: r.Deployment.Spec.Template.Decoded().Spec})
		decided.Deadline = steps.AboutDeadline(r.Seen.Settings.Drain, grace, Deadline(r.Deployment))
	}
	return decided
}

// mostSurge returns how many surge pods an update may have: see surger.toAdd.
func (r Rollout) mostSurge() int {
	if !r.MaySurge() {
		return 0
	}
	return max(0, min(int(r.Deployment.MaxSurge()), int(apps.Desired(r.Deployment)-r.Deployment.MaxUnavailable())))
}

// Preview returns what happens to the pods if the Deployment, which is not stored yet, replaces the one with the template before. It
// needs no Pods.
func (r Rollout) Preview(before apps.Template) steps.Preview {
	o, template := r.observed(), r.Deployment.Spec.Template
	// The new ReplicaSet need not exist yet, so the template says whether a surge pod finds a node.
	o.surge = surgeOf(r, r.UpdateRevision(), readiness.WhyNoSurge(template.Decoded().Spec, r.Seen.DryRun.Claim))
	preview := steps.Preview{EditDecision: r.DecideEdit(before), Pods: o.sets.Wanted,
		AtPartition: r.Seen.Settings.Partition.Keeps(o.sets.Wanted), MinReadySeconds: r.Deployment.Spec.MinReadySeconds}
	if o.surge.used {
		preview.SurgePods = min(o.maxSurge(), max(0, preview.Moving()-o.maxUnavailable()))
		preview.Replaced = o.staying(preview.SurgePods)
	}
	preview.AtATime = min(o.maxUnavailable()+preview.SurgePods, preview.Moving())
	return preview
}
