package webhook

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/observe"
)

// daemonSetController is the user of the native controller of DaemonSets.
const daemonSetController = "system:serviceaccount:kube-system:daemon-set-controller"

// daemonSetKind: the DaemonSet controller creates and deletes the pods.
var daemonSetKind = kind{
	Kind:       observe.DaemonSets,
	podsBy:     daemonSetController,
	decideEdit: Handlers.decideDaemonSet,
	stays:      Handlers.holdsDaemonPod,
	// syncNodes in pkg/controller/daemon/daemon_controller.go takes the pod as gone, without event or back-off.
	refuse:        notFound,
	keepsRevision: Handlers.keepsDaemonRevision,
	futile:        Handlers.sameDaemons,
	throttle:      throttleFew,
}

func (h Handlers) decideDaemonSet(ctx context.Context, req admission.Request, before *workload) (editDecision, error) {
	daemonSet, err := decode[apps.DaemonSet](req.Object)
	if err != nil {
		return editDecision{}, err
	}
	stored, err := h.Live.DaemonSet(ctx, key(req))
	if stored == nil || err != nil {
		return editDecision{}, err
	}
	daemonSet.Namespace, daemonSet.UID, daemonSet.Spec.Selector = stored.Namespace, stored.UID, stored.Spec.Selector
	rollout, err := h.Live.DaemonRolloutOf(ctx, daemonSet)
	if err != nil || !rollout.Seen.Mode.Manages() {
		return editDecision{}, err
	}
	return editDecisionOf(rollout.DecideEdit(before.Spec.Template)), nil
}

// holdsDaemonPod reports whether a pod of a DaemonSet stays because it is updated in place. It reads live for the same reason as
// Handlers.updating. It also reads live before it allows a deletion: a deletion that is allowed by mistake loses a pod. To hold a pod
// whose gate is closed, the cache suffices. A pod without a controller was orphaned on purpose after the deletion was decided.
func (h Handlers) holdsDaemonPod(ctx context.Context, pod *corev1.Pod) (bool, error) {
	if metav1.GetControllerOfNoCopy(pod) == nil {
		return true, nil
	}
	if readiness.Closed(pod) { // the gate will open, or the pod will get its new hash: then the controller looks again
		if stays, err := h.holdsDaemon(ctx, h.Cached, pod); stays && err == nil {
			return true, nil
		}
	}
	return h.holdsDaemon(ctx, h.Live, pod)
}

func (h Handlers) holdsDaemon(ctx context.Context, reader observe.Reader, pod *corev1.Pod) (bool, error) {
	rollout, err := reader.Deletion(ctx, pod, h.Cached)
	if rollout == nil || err != nil {
		return false, err
	}
	rollout.HeldSince = h.heldSince(
		rollout.DaemonSet, rollout.DaemonSet.Spec.Template, steps.RevisionOf(rollout.UpdateRevision()), rollout.Seen.Now)
	stay, why := rollout.HoldsDeletion(pod)
	h.Log.V(1).Info("Deletion by the DaemonSet controller", "namespace", pod.Namespace, "pod", pod.Name, "held", stay, "reason", why.Message)
	return stay, nil
}

func (h Handlers) keepsDaemonRevision(ctx context.Context, reader observe.Reader, revision *apps.ControllerRevision) (bool, error) {
	daemonSet, err := reader.DaemonSetOf(ctx, revision)
	if daemonSet == nil || err != nil {
		return false, err
	}
	rollout, err := reader.DaemonRolloutOf(ctx, daemonSet)
	if err != nil {
		return false, err
	}
	rollout.HeldSince = h.heldSince(daemonSet, daemonSet.Spec.Template, steps.RevisionOf(rollout.UpdateRevision()), rollout.Seen.Now)
	keep, why := rollout.HoldsCleanup(revision)
	h.Log.V(1).Info("Deletion by the DaemonSet controller",
		"namespace", revision.Namespace, "revision", revision.Name, "held", keep, "reason", why.Message)
	return keep, nil
}
