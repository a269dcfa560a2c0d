package webhook

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/controllerrevisions"
	"github.com/stayput/stayput/internal/observe"
)

// statefulSetController is the user of the native controller of StatefulSets.
const statefulSetController = "system:serviceaccount:kube-system:statefulset-controller"

// statefulSetKind: the StatefulSet controller creates and deletes the pods.
var statefulSetKind = revised(observe.StatefulSets, controllerrevisions.Rollout.Progress, kind{
	podsBy:    statefulSetController,
	refusePod: holding.refuseMember,
	throttle:  throttling{throttle, 1},
})

// refuseMember: after NotFound the controller would count the pod as deleted in its status, would record SuccessfulDelete, and would not
// try again. After any other error it writes the status as it is, records FailedDelete with the message, and tries again later
// (performUpdate in pkg/controller/statefulset/stateful_set_control.go, recordPodEvent in stateful_pod_control.go).
func (h holding) refuseMember(ctx context.Context, pod *corev1.Pod) (refusal, error) {
	return h.refuseControlled(ctx, observe.StatefulSets, pod)
}
