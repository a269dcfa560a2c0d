package inplace

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

// patchStatus writes the status while the native controller is denied before it does: by its own formula, so that both
// always write the same. That all is done is left to it.
func (v *view) patchStatus() {
	if v.target == nil && !v.paused() {
		return // it creates the target and writes the status next
	}
	formula := v.formula()
	status := formula.nativeStatus()
	if Announces(v.Deployment, status) {
		return
	}
	v.again(formula.untilDeadline(status))
	operations := statusOperations(v.Deployment.Status, status)
	switch left := v.statusCanWait(status); {
	case len(operations) == 0:
	case left > 0:
		v.putOff(putOffStatus, left)
	default:
		v.step(PatchStatus{Deployment: v.Deployment, Status: status, Operations: guarded(v.Deployment, operations...)})
	}
}

// statusCanWait is how long the status can wait to be told together with what comes next. Counts can, for a moment that nobody notices. What
// people and tools act on is told at once, but not while pods change their ReplicaSet: the sums are of two moments then.
func (v *view) statusCanWait(status appsv1.DeploymentStatus) time.Duration {
	switch {
	case sameForActing(v.Deployment.Status, status):
		return v.canWait(putOffStatus, statusBeat, v.Now)
	case !v.still() && status.ObservedGeneration == v.Deployment.Status.ObservedGeneration:
		return v.canWait(putOffStatus, beat, v.Now)
	}
	return 0
}

// formula is the native one, as long as nobody says otherwise.
func (v *view) formula() formula {
	f := formula{deployment: v.Deployment, waiting: v.waiting, now: v.Now}
	for _, s := range v.sets {
		f.sets = append(f.sets, s.rs)
	}
	if v.target != nil {
		f.target = v.target.rs
	}
	return f
}

// Announces tells whether people would take the status for the end of the rollout: rollout_status.go in
// kubectl/pkg/polymorphichelpers. The native DeploymentComplete is stricter, but with borrowed pods even that can hold in a moment
// in which a pod is on its way between two ReplicaSets, where nobody counts it.
func Announces(d *Deployment, status appsv1.DeploymentStatus) bool {
	return status.ObservedGeneration >= d.Generation && status.UpdatedReplicas >= desired(d) &&
		status.Replicas <= status.UpdatedReplicas && status.AvailableReplicas >= status.UpdatedReplicas
}
