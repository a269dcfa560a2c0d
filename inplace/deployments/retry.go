package deployments

import (
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/revisions"
)

// A refused scaling must come again even if all managers are killed now. The Deployment controller tries again with the next event of the
// Deployment or of one of its ReplicaSets, and after a plain Conflict also by itself (handleErr in
// pkg/controller/deployment/deployment_controller.go): first after 5 ms, and then 14 times more, each time after twice the last delay.

// EventToCome reports whether the Deployment controller will hear of the ReplicaSet, even if all managers are killed now: its status is
// about to change, because its controller has not written one for its last generation, or because a pod is not available yet. Only what the
// API server says now counts. An event that the cache has not seen may have passed.
func EventToCome(rs *apps.ReplicaSet) bool {
	return rs.Status.ObservedGeneration < rs.Generation || rs.Status.AvailableReplicas < rs.Status.Replicas
}

// BegunLately reports whether the leader has not begun the update, or began it in the last inplace.LeaderPatience. Later, the update may be
// waiting for something that takes days.
func (r Rollout) BegunLately() bool {
	by := revisions.HeldBy(r.UpdateRevision(), r.ReplicaSets, r.Seen.Now)
	if by == nil || !revisions.Started(by.Labels) {
		return true
	}
	begun, _ := inplace.Since(revisions.StartedAt(by.Labels[inplace.LabelUpdating]), inplace.LeaderPatience, r.Seen.Now)
	return !begun
}
