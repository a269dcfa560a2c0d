package deployments

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/replicas"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/statuses"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/inplace/times"
)

// keepFallback nudges the Deployment controller where no label on the update revision does, as long as that controller has something left
// to do. It changes a time in the status that has no other meaning.
func (v *Planner) keepFallback(left bool) {
	left = left && v.Seen.Mode.Manages() && v.Seen.FellBack(v.Deployment.Spec.Template)
	v.ForgetFallback(v.Deployment, v.Seen.PersistedFallback, left)
	if !left || v.NewRS != nil && revisions.FellBack(v.NewRS.Rs) {
		return
	}
	available := conditions.DeploymentCondition(v.Deployment.Status, appsv1.DeploymentAvailable)
	if available == nil {
		return
	}
	due, wait := times.Since(available.LastUpdateTime.Time, revisions.NudgeEvery, v.Seen.Now)
	v.Again(wait)
	if due {
		v.nudgeByStatus()
	}
}

// nudgeDeleters nudges the controllers of ReplicaSets with too many pods, through a pod. It does so where a mark kept them from deleting
// pods, could not be removed, and no longer holds: the fallback is persisted, or the hold has expired.
func (v *Planner) nudgeDeleters(left bool) {
	if !v.Seen.Mode.Manages() {
		return // nothing is held there, and only marks may be written
	}
	persistedFallback := left && v.Seen.FellBack(v.Deployment.Spec.Template)
	for _, s := range v.Sets {
		expired, wait := revisions.Expiry(s.Rs.Labels, v.Seen.Now)
		switch {
		case s.Surplus() == 0 || !persistedFallback && !revisions.Updating(s.Rs):
		case persistedFallback || expired:
			podstate.NudgeByPod(&v.PlanBuilder, replicas.StatesOf(s.Pods), revisions.NudgeEvery, v.Seen.Now)
		default:
			v.Again(wait)
		}
	}
}

// nudgeByStatus writes another time into the condition Available, which must exist.
func (v *Planner) nudgeByStatus() {
	status := *v.Deployment.Status.DeepCopy()
	conditions.DeploymentCondition(status, appsv1.DeploymentAvailable).LastUpdateTime = metav1.NewTime(v.Seen.Now)
	v.Step(steps.PatchStatus{Deployment: v.Deployment, Status: status,
		Operations: patches.Guarded(v.Deployment, statuses.StatusOperations(v.Deployment.Status, status)...)})
	v.Again(revisions.NudgeEvery)
}
