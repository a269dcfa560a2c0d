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

// keepFallback wakes the Deployment controller, as long as there is something left to do for it, where a label does not: by a time in the status
// that means nothing to anybody.
func (v *Planner) keepFallback(left bool) {
	left = left && v.Mode.Manages() && v.fallbackPersisted()
	v.ForgetFallback(v.Deployment, v.PersistedFallback, left)
	if !left || v.NewRS != nil && revisions.FellBack(v.NewRS.Rs) {
		return
	}
	available := conditions.DeploymentCondition(v.Deployment.Status, appsv1.DeploymentAvailable)
	if available == nil {
		return
	}
	due, wait := times.Since(available.LastUpdateTime.Time, revisions.NudgeEvery, v.Now)
	v.Again(wait)
	if due {
		v.nudgeByStatus()
	}
}

// nudgeDeleters wakes the controllers of ReplicaSets with pods too many, by a pod, where a mark has kept them from deleting and no longer does
// although it could not be taken off: the update is on record, or nobody tends it any more.
func (v *Planner) nudgeDeleters(left bool) {
	if !v.Mode.Manages() {
		return // nothing is held there, and nothing but marks may be written
	}
	persistedFallback := left && v.fallbackPersisted()
	for _, s := range v.Sets {
		expired, wait := revisions.Expiry(s.Rs.Labels, v.Now)
		switch {
		case s.Surplus() == 0 || !persistedFallback && !revisions.Updating(s.Rs):
		case persistedFallback || expired:
			podstate.NudgeByPod(&v.PlanBuilder, replicas.StatesOf(s.Pods), revisions.NudgeEvery, v.Now)
		default:
			v.Again(wait)
		}
	}
}

// nudgeByStatus writes another time into the condition Available, which there is.
func (v *Planner) nudgeByStatus() {
	status := *v.Deployment.Status.DeepCopy()
	conditions.DeploymentCondition(status, appsv1.DeploymentAvailable).LastUpdateTime = metav1.NewTime(v.Now)
	v.Step(steps.PatchStatus{Deployment: v.Deployment, Status: status, Operations: patches.Guarded(v.Deployment, statuses.StatusOperations(v.Deployment.Status, status)...)})
	v.Again(revisions.NudgeEvery)
}
