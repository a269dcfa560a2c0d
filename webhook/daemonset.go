package webhook

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/controllerrevisions"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/internal/observe"
)

// daemonSetController is the user of the native controller of DaemonSets.
const daemonSetController = "system:serviceaccount:kube-system:daemon-set-controller"

// daemonSetKind: the DaemonSet controller creates and deletes the pods. It deletes pods because too few of them are out of service.
var daemonSetKind = revised(observe.DaemonSets, controllerrevisions.Rollout.OutOfService, kind{
	podsBy:    daemonSetController,
	refusePod: holding.refuseDaemonPod,
	throttle:  throttling{throttleFew, 1},
})

// refuseDaemonPod: after NotFound the controller takes the pod as gone, without event or back-off (syncNodes in
// pkg/controller/daemon/daemon_controller.go), and looks again only after an event. Such an event comes, even if all managers die, only for
// a pod that is out of service: its kubelet puts it back. After any other error the controller records FailedDelete and tries again.
func (h holding) refuseDaemonPod(ctx context.Context, pod *corev1.Pod) (refusal, error) {
	refuse, err := h.refuseControlled(ctx, observe.DaemonSets, pod)
	if refuse != nil && readiness.Out(pod) {
		return notFound, err
	}
	return refuse, err
}
