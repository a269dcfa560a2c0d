package deployments

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// keepFallback nudges the native controllers after the update fell back, as long as they have something left to do. Then it forgets the
// fallback. Missing replicas count: with strategy Recreate, the end of the last old pod does not make the Deployment controller look again
// if there are new pods already (deletePod in pkg/controller/deployment/deployment_controller.go). So do missing pods: see nudge.
func (p planner) keepFallback(marks Marking) {
	newRS, fellBack := p.sets.New, p.Seen.WhyFellBack(p.update.Workload) != nil
	incomplete := newRS != nil && (newRS.Size() < p.sets.Wanted || newRS.Missing() > 0)
	left := p.sets.OldInUse() || p.sets.Overfull() || incomplete
	if p.Seen.Mode.Manages() { // otherwise nothing is held, and only marks may be written
		p.nudgeDeleters(left && fellBack)
	}
	left = left && fellBack && p.Seen.Mode.Manages()
	p.update.Plan.ForgetFallback(p.Deployment, p.Seen.Fallback, left)
	p.nudge(marks, left)
	if left {
		p.nudgeByStatus()
	}
}

// nudge nudges the Deployment controller if it has something left to do, by its newest ReplicaSet (updateReplicaSet in
// pkg/controller/deployment/deployment_controller.go). It also nudges the controllers of ReplicaSets that lack pods: such a controller may
// wait for the deletion of a pod that has moved, for five minutes, and then looks only with an event (ExpectationsTimeout in
// pkg/controller/controller_utils.go).
func (p planner) nudge(marks Marking, left bool) {
	if !left {
		return
	}
	for i, s := range p.sets.All {
		if newest := i == len(p.sets.All)-1; newest || s.Missing() > 0 {
			marks[s].Nudged = p.update.Plan.NextNudge(s.Rs.Labels[inplace.LabelRenewed], revisions.RenewEvery, p.Seen.Now)
		}
	}
}

// nudgeByStatus nudges the Deployment controller by a time in the status that has no other meaning, where writes to its ReplicaSets are
// refused or fail: that of the condition Available.
func (p planner) nudgeByStatus() {
	d, plan, now := p.Deployment, p.update.Plan, p.Seen.Now
	available := apps.DeploymentCondition(d.Status, appsv1.DeploymentAvailable)
	newest := p.sets.All[len(p.sets.All)-1] // there is one: without ReplicaSets nothing is left to do
	if available == nil || !p.Seen.Fallback.NudgesFail(newest.Rs.Labels, revisions.RenewEvery, now) {
		return
	}
	due, wait := inplace.Since(available.LastUpdateTime.Time, revisions.RenewEvery, now)
	if !due {
		plan.Again(wait)
		return
	}
	status := *d.Status.DeepCopy()
	apps.DeploymentCondition(status, appsv1.DeploymentAvailable).LastUpdateTime = metav1.NewTime(now)
	plan.Step(steps.PatchStatus{Deployment: d, Status: status,
		Operations: patches.Guarded(d, StatusOperations(d.Status, status)...)})
	plan.Again(revisions.RenewEvery)
}

// nudgeDeleters nudges the controllers of ReplicaSets with too many pods, through a pod. It does so where a mark kept them from deleting
// pods, could not be removed, and no longer holds: the fallback is persisted, or the hold has expired.
func (p planner) nudgeDeleters(persistedFallback bool) {
	for _, s := range p.sets.All {
		expired, wait := revisions.Expiry(s.Rs.Labels, p.Seen.Now)
		switch {
		case s.Surplus() == 0 || !persistedFallback && !revisions.Updating(s.Rs):
		case persistedFallback || expired:
			var states []*podstate.State
			for _, m := range s.Pods {
				states = append(states, &m.State)
			}
			podstate.NudgeByPod(p.update.Plan, states, revisions.RenewEvery, p.Seen.Now)
		default:
			p.update.Plan.Again(wait)
		}
	}
}
