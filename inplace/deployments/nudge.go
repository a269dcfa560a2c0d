package deployments

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/replicas"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/statuses"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/inplace/times"
)

// keepFallback nudges the native controllers after the update fell back, as long as they have something left to do. Then it forgets the
// fallback. Missing replicas count: with strategy Recreate, the end of the last old pod does not make the Deployment controller look again
// if there are new pods already (deletePod in pkg/controller/deployment/deployment_controller.go).
func (v *Planner) keepFallback() {
	left := v.oldInUse() || v.Sets.Overfull() || v.NewRS != nil && v.NewRS.Size() < v.desired()
	v.nudgeDeleters(left)
	left = left && v.seen.Mode.Manages() && v.seen.FellBack(v.update.Workload.Template)
	v.plan.ForgetFallback(v.deployment, v.seen.Fallback, left)
	v.nudge(left)
	v.nudgeByStatus(left)
}

// nudge nudges the Deployment controller if it has something left to do, by its newest ReplicaSet (updateReplicaSet in
// pkg/controller/deployment/deployment_controller.go).
func (v *Planner) nudge(left bool) {
	if left && len(v.Sets) > 0 {
		newest := v.Sets[len(v.Sets)-1]
		newest.Wanted.Nudged = v.plan.NextNudge(newest.Rs.Labels[inplace.LabelRenewed], true, revisions.NudgeEvery, v.seen.Now)
	}
}

// nudgeByStatus nudges the Deployment controller by a time in the status that has no other meaning, where writes to its ReplicaSets are
// refused or fail.
func (v *Planner) nudgeByStatus(left bool) {
	available := apps.DeploymentCondition(v.deployment.Status, appsv1.DeploymentAvailable)
	if !left || available == nil {
		return
	}
	if n := len(v.Sets); n > 0 && !v.seen.Fallback.NudgesFail(v.Sets[n-1].Rs.Labels, revisions.NudgeEvery, v.seen.Now) {
		return
	}
	due, wait := times.Since(available.LastUpdateTime.Time, revisions.NudgeEvery, v.seen.Now)
	v.plan.Again(wait)
	if due {
		v.touchStatus()
	}
}

// nudgeDeleters nudges the controllers of ReplicaSets with too many pods, through a pod. It does so where a mark kept them from deleting
// pods, could not be removed, and no longer holds: the fallback is persisted, or the hold has expired.
func (v *Planner) nudgeDeleters(left bool) {
	if !v.seen.Mode.Manages() {
		return // nothing is held there, and only marks may be written
	}
	persistedFallback := left && v.seen.FellBack(v.update.Workload.Template)
	for _, s := range v.Sets {
		expired, wait := revisions.Expiry(s.Rs.Labels, v.seen.Now)
		switch {
		case s.Surplus() == 0 || !persistedFallback && !revisions.Updating(s.Rs):
		case persistedFallback || expired:
			podstate.NudgeByPod(v.plan, replicas.StatesOf(s.Pods), revisions.NudgeEvery, v.seen.Now)
		default:
			v.plan.Again(wait)
		}
	}
}

// touchStatus writes another time into the condition Available, which must exist.
func (v *Planner) touchStatus() {
	status := *v.deployment.Status.DeepCopy()
	apps.DeploymentCondition(status, appsv1.DeploymentAvailable).LastUpdateTime = metav1.NewTime(v.seen.Now)
	v.plan.Step(steps.PatchStatus{Deployment: v.deployment, Status: status,
		Operations: patches.Guarded(v.deployment, statuses.StatusOperations(v.deployment.Status, status)...)})
	v.plan.Again(revisions.NudgeEvery)
}
