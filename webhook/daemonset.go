package webhook

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace/controllerrevisions"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/internal/observe"
)

// daemonSetController is the user of the native controller of DaemonSets.
const daemonSetController = "system:serviceaccount:kube-system:daemon-set-controller"

// daemonSetKind: the DaemonSet controller creates and deletes the pods. It deletes pods because too few of them are out of service.
var daemonSetKind = revised(observe.DaemonSets, controllerrevisions.Rollout.OutOfService, kind{
	podsBy: daemonSetController,
	stays:  holding.holdsDaemonPod,
	// syncNodes in pkg/controller/daemon/daemon_controller.go takes the pod as gone, without event or back-off.
	refuse:   notFound,
	throttle: throttling{throttleFew, 1},
})

// holdsDaemonPod is controlledStays, but to hold a pod that is out of service, the cache suffices: the pod will come back into service, or
// will get its new hash, and then the native controller looks again.
func (h holding) holdsDaemonPod(ctx context.Context, reader observe.Reader, pod *corev1.Pod) (bool, error) {
	if readiness.Out(pod) && metav1.GetControllerOfNoCopy(pod) != nil {
		if stays, err := h.holdsDeletion(ctx, observe.DaemonSets, h.Cached, pod); stays && err == nil {
			return true, nil
		}
	}
	return h.controlledStays(ctx, observe.DaemonSets, reader, pod)
}
