package simulation

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace/apps"
)

// What follows is the status as the Deployment controller writes it. It uses no rule of the product, which writes statuses, too, so that it
// cannot share a mistake with it.

// calculated is calculateStatus in sync.go.
func calculated(d *apps.Deployment, all []*apps.ReplicaSet, newRS *apps.ReplicaSet, now time.Time) appsv1.DeploymentStatus {
	status := appsv1.DeploymentStatus{ObservedGeneration: d.Generation, CollisionCount: d.Status.CollisionCount,
		TerminatingReplicas: d.Status.TerminatingReplicas, Conditions: slices.Clone(d.Status.Conditions)}
	for _, rs := range all {
		status.Replicas += rs.Status.Replicas
		status.ReadyReplicas += rs.Status.ReadyReplicas
		status.AvailableReplicas += rs.Status.AvailableReplicas
	}
	if newRS != nil {
		status.UpdatedReplicas = newRS.Status.Replicas
	}
	status.UnavailableReplicas = max(0, sumReplicas(all)-status.AvailableReplicas)
	available := condition(appsv1.DeploymentAvailable, corev1.ConditionTrue, "MinimumReplicasAvailable", now)
	if status.AvailableReplicas < apps.Desired(d)-d.MaxUnavailable() {
		available.Status, available.Reason = corev1.ConditionFalse, "MinimumReplicasUnavailable"
	}
	setCondition(&status, available)
	return status
}

func condition(
	kind appsv1.DeploymentConditionType, is corev1.ConditionStatus, reason string, now time.Time,
) appsv1.DeploymentCondition {
	at := metav1.NewTime(now.Truncate(time.Second))
	return appsv1.DeploymentCondition{Type: kind, Status: is, Reason: reason, LastUpdateTime: at, LastTransitionTime: at}
}

// setCondition is SetDeploymentCondition.
func setCondition(status *appsv1.DeploymentStatus, next appsv1.DeploymentCondition) {
	if current := apps.DeploymentCondition(*status, next.Type); current != nil && current.Status == next.Status {
		if current.Reason == next.Reason {
			return
		}
		next.LastTransitionTime = current.LastTransitionTime
	}
	removeCondition(status, next.Type)
	status.Conditions = append(status.Conditions, next)
}

func removeCondition(status *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType) {
	status.Conditions = slices.DeleteFunc(slices.Clone(status.Conditions), func(c appsv1.DeploymentCondition) bool { return c.Type == kind })
}

// progress is the condition Progressing as in syncRolloutStatus.
func progress(d *apps.Deployment, status *appsv1.DeploymentStatus, now time.Time) {
	current := apps.DeploymentCondition(d.Status, appsv1.DeploymentProgressing)
	switch {
	case !hasDeadline(d):
		removeCondition(status, appsv1.DeploymentProgressing)
	case status.Replicas == status.UpdatedReplicas && current != nil && current.Reason == "NewReplicaSetAvailable":
	case statusComplete(d, *status):
		setCondition(status, condition(appsv1.DeploymentProgressing, corev1.ConditionTrue, "NewReplicaSetAvailable", now))
	case makesProgress(d.Status, *status):
		updated := condition(appsv1.DeploymentProgressing, corev1.ConditionTrue, "ReplicaSetUpdated", now)
		if current != nil && current.Status == corev1.ConditionTrue {
			updated.LastTransitionTime = current.LastTransitionTime
		}
		removeCondition(status, appsv1.DeploymentProgressing)
		setCondition(status, updated)
	case timedOut(d, current, now):
		setCondition(status, condition(appsv1.DeploymentProgressing, corev1.ConditionFalse, "ProgressDeadlineExceeded", now))
	}
}

func hasDeadline(d *apps.Deployment) bool { return deadline(d) != 1<<31-1 }
func deadline(d *apps.Deployment) int32   { return *d.Spec.ProgressDeadlineSeconds }

// makesProgress is DeploymentProgressing.
func makesProgress(before, now appsv1.DeploymentStatus) bool {
	fewer := now.Replicas-now.UpdatedReplicas < before.Replicas-before.UpdatedReplicas
	more := now.ReadyReplicas > before.ReadyReplicas || now.AvailableReplicas > before.AvailableReplicas
	return now.UpdatedReplicas > before.UpdatedReplicas || fewer || more
}

// timedOut is DeploymentTimedOut.
func timedOut(d *apps.Deployment, progressing *appsv1.DeploymentCondition, now time.Time) bool {
	switch {
	case progressing == nil || progressing.Reason == "NewReplicaSetAvailable":
		return false
	case progressing.Reason == "ProgressDeadlineExceeded":
		return true
	}
	return progressing.LastUpdateTime.Add(time.Duration(deadline(d)) * time.Second).Before(now)
}

// failure sets the condition ReplicaFailure, as getReplicaFailures finds it.
func failure(all []*apps.ReplicaSet, newRS *apps.ReplicaSet, status *appsv1.DeploymentStatus) {
	if newRS != nil {
		all = append([]*apps.ReplicaSet{newRS}, all...)
	}
	for _, rs := range all {
		for _, c := range rs.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure {
				setCondition(status, appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: c.Status, Reason: c.Reason,
					Message: c.Message, LastTransitionTime: c.LastTransitionTime, LastUpdateTime: c.LastTransitionTime})
				return
			}
		}
	}
	removeCondition(status, appsv1.DeploymentReplicaFailure)
}

// syncDeploymentStatus leaves Progressing as it is.
func (c *deploymentController) syncDeploymentStatus(d *apps.Deployment, all []*apps.ReplicaSet, newRS *apps.ReplicaSet) error {
	return c.storeStatus(d, calculated(d, all, newRS, c.now))
}

// syncStatus is syncRolloutStatus.
func (c *deploymentController) syncStatus(d *apps.Deployment, all []*apps.ReplicaSet, newRS *apps.ReplicaSet) error {
	status := calculated(d, all, newRS, c.now)
	progress(d, &status, c.now)
	failure(all, newRS, &status)
	if equality.Semantic.DeepEqual(d.Status, status) {
		c.awaitDeadline(d)
		return nil
	}
	return c.storeStatus(d, status)
}

func (c *deploymentController) storeStatus(d *apps.Deployment, status appsv1.DeploymentStatus) error {
	if equality.Semantic.DeepEqual(d.Status, status) {
		return nil
	}
	next := d.DeepCopy()
	next.Status = status
	return c.putStatus(next)
}

// awaitDeadline is requeueStuckDeployment.
func (c *deploymentController) awaitDeadline(d *apps.Deployment) {
	progressing := apps.DeploymentCondition(d.Status, appsv1.DeploymentProgressing)
	if !hasDeadline(d) || progressing == nil || statusComplete(d, d.Status) || progressing.Reason == "ProgressDeadlineExceeded" {
		return
	}
	after := progressing.LastUpdateTime.Add(time.Duration(deadline(d)) * time.Second).Sub(c.now)
	if after >= time.Second {
		after += time.Second
	}
	c.dirty, c.due = true, c.now.Add(max(after, 5*time.Millisecond))
}
