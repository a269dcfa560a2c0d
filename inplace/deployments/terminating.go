package deployments

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
)

// handBack makes terminating pods that have moved in this update pods of the old ReplicaSet again. Its controller may have sent the DELETE
// before the pod moved, and the API server did not reach the webhook that would have held it. That controller does nothing until a pod of
// its own ReplicaSet terminates. It gives up after five minutes, and notices that only at the next event (ExpectationsTimeout in
// pkg/controller/controller_utils.go, updatePod in pkg/controller/replicaset/replica_set.go). Meanwhile the Deployment controller does not
// scale that ReplicaSet either (cleanupUnhealthyReplicas in pkg/controller/deployment/rolling.go).
func (o *observed) handBack() {
	for _, pod := range o.Seen.Pods {
		if from := o.movedFrom(pod); pod.DeletionTimestamp != nil && from != nil {
			o.update.Plan.Step(HandBack(pod, from.Rs))
		}
	}
}

// movedFrom returns the old ReplicaSet of the update in which the pod has moved to the new one; nil if it has not. Among several, any may
// have deleted the pod.
func (o *observed) movedFrom(pod *corev1.Pod) *Set {
	newRS := o.sets.New
	if newRS == nil || o.sets.Of(pod) != newRS || readiness.MoveOf(pod).Hash != newRS.Rs.Labels[inplace.LabelTemplateHash] {
		return nil
	}
	i := slices.IndexFunc(o.sets.All, func(s *Set) bool { return s != newRS && revisions.Updating(s.Rs) })
	if i < 0 {
		return nil
	}
	return o.sets.All[i]
}
