package deployments

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/replicas"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/statuses"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/inplace/times"
)

// keepRecord wakes the Deployment controller, as long as there is something left to do for it, where a label does not: by a time in the status
// that means nothing to anybody.
func (v *View) keepRecord(left bool) {
	left = left && v.Mode.Manages() && v.onRecord()
	v.ForgetRecord(v.Deployment, v.Recorded, left)
	if !left || v.Target != nil && revisions.Released(v.Target.Rs) {
		return
	}
	available := conditions.DeploymentCondition(v.Deployment.Status, appsv1.DeploymentAvailable)
	if available == nil {
		return
	}
	due, wait := times.Since(available.LastUpdateTime.Time, revisions.TouchEvery, v.Now)
	v.Again(wait)
	if due {
		v.touchStatus()
	}
}

// wakeDeleters wakes the controllers of ReplicaSets with pods too many, by a pod, where a mark has kept them from deleting and no longer does
// although it could not be taken off: the update is on record, or nobody tends it any more.
func (v *View) wakeDeleters(left bool) {
	if !v.Mode.Manages() {
		return // nothing is held there, and nothing but marks may be written
	}
	recorded := left && v.onRecord()
	for _, s := range v.Sets {
		lapsed, wait := revisions.Lapse(s.Rs.Labels, v.Now)
		switch {
		case s.Surplus() == 0 || !recorded && !revisions.Settling(s.Rs):
		case recorded || lapsed:
			member.WakeByPod(&v.Draft, replicas.StatesOf(s.Pods), revisions.TouchEvery, v.Now)
		default:
			v.Again(wait)
		}
	}
}

// touchStatus writes another time into the condition Available, which there is.
func (v *View) touchStatus() {
	status := *v.Deployment.Status.DeepCopy()
	conditions.DeploymentCondition(status, appsv1.DeploymentAvailable).LastUpdateTime = metav1.NewTime(v.Now)
	v.Step(steps.PatchStatus{Deployment: v.Deployment, Status: status, Operations: patches.Guarded(v.Deployment, statuses.StatusOperations(v.Deployment.Status, status)...)})
	v.Again(revisions.TouchEvery)
}
