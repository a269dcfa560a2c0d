package webhook

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/observe"
)

// mutatePod gives a pod of a managed workload the readiness gate at birth: gates cannot be added later. It also takes off
// the marks that came with the template, since this pod has neither been moved nor borrowed.
func (h Handlers) mutatePod(ctx context.Context, req admission.Request) (answer, error) {
	ours := by(req, replicaSetController, admissionv1.Create) || by(req, daemonSetController, admissionv1.Create)
	if !ours || !h.GateReady() {
		return allow(), nil
	}
	pod, err := decodePod(req, req.Object)
	if err != nil {
		return allow(), err
	}
	if managed, err := h.managed(ctx, pod); err != nil || !managed {
		return allow(), err
	}
	operations := setAnnotation(pod.Annotations, inplace.AnnotationMove, "")
	operations = append(operations, setAnnotation(pod.Annotations, inplace.AnnotationBorrowed, "")...)
	return patch(gated, append(operations, inplace.AddGate(pod)...)), nil
}

// managed asks the cache, and the API server only about a workload too new for the cache.
func (h Handlers) managed(ctx context.Context, pod *corev1.Pod) (bool, error) {
	for _, reader := range []observe.Reader{h.Cached, h.Live} {
		workload, err := reader.WorkloadOf(ctx, pod)
		if err != nil {
			return false, err
		}
		if workload != nil {
			mode, err := reader.Mode(ctx, pod.Namespace, workload.GetLabels())
			if err != nil || !mode.Manages() {
				return false, err
			}
			// A gate is to be opened by just those writes which may not be taken.
			record, err := h.Hold.Recorded(ctx, workload.GetUID())
			return !record.Unwritable(), err
		}
	}
	return false, nil
}

// validatePod holds deletions by which the native controllers would replace pods that are updated in place. NotFound makes both
// controllers take the pod as gone, without event or back-off (manageReplicas in pkg/controller/replicaset/replica_set.go,
// syncNodes in pkg/controller/daemon/daemon_controller.go).
func (h Handlers) validatePod(ctx context.Context, req admission.Request) (answer, error) {
	var holds func(context.Context, *corev1.Pod) (bool, error)
	switch {
	case by(req, replicaSetController, admissionv1.Delete):
		holds = h.settling
	case by(req, daemonSetController, admissionv1.Delete):
		holds = h.daemonStays
	default:
		return allow(), nil
	}
	pod, err := decodePod(req, req.OldObject)
	if err != nil {
		return allow(), err
	}
	return h.holdDeletion(ctx, req, func(ctx context.Context) (bool, error) { return holds(ctx, pod) })
}

// holdDeletion tells the native controller that what it deletes is gone already, if it is to stay and a leader lives.
func (h Handlers) holdDeletion(ctx context.Context, req admission.Request, stays func(context.Context) (bool, error)) (answer, error) {
	if alive, err := h.alive(ctx); err != nil || !alive {
		return allow(), err
	}
	if stay, err := stays(ctx); err != nil || !stay {
		return allow(), err
	}
	gone := apierrors.NewNotFound(schema.GroupResource{Group: req.Resource.Group, Resource: req.Resource.Resource}, req.Name)
	gone.ErrStatus.Message = "held: stayput updates the pods of this workload in place"
	return deny(held, gone), nil
}

// settling holds the pods of a ReplicaSet that is, borrowed ones aside that are given back. Unlike a denied update a deletion does not come
// again, so the mark is read live before denying too: whoever takes it off wakes the controller by that, and an answer from an older cache
// would come after the wake-up. Not even a closed gate will do: on a node that is not heard of it stays closed.
func (h Handlers) settling(ctx context.Context, pod *corev1.Pod) (bool, error) {
	if inplace.MayGo(pod) {
		return false, nil
	}
	rs, err := h.Live.ReplicaSetOf(ctx, pod)
	if rs == nil || err != nil {
		return false, err
	}
	return h.markHolds(ctx, rs)
}

// markHolds tells whether the mark on a ReplicaSet, as the API server has it, holds deletions.
func (h Handlers) markHolds(ctx context.Context, rs *inplace.ReplicaSet) (bool, error) {
	if !inplace.Settling(rs) {
		return false, nil
	}
	// A ReplicaSet that somebody made from another's manifest has the mark, and nobody to take it off.
	deployment, err := h.Live.DeploymentOf(ctx, rs)
	if deployment == nil || err != nil || !h.lasts(deployment, rs) {
		return false, err
	}
	// One whose mark could not be taken off when its update was given back.
	record, err := h.Hold.Recorded(ctx, deployment.UID)
	return record == (inplace.Record{}), err
}

// daemonStays holds the pods of a DaemonSet that is updated in place. It reads live for the same reason, and to allow as well: what
// is allowed by mistake is a pod lost. What is closed may be held by the cache. One that nobody controls any more has been left behind on purpose since the deletion was decided.
func (h Handlers) daemonStays(ctx context.Context, pod *corev1.Pod) (bool, error) {
	if metav1.GetControllerOfNoCopy(pod) == nil {
		return true, nil
	}
	if inplace.Closed(pod) { // the gate will open, or the pod get its new hash: that wakes the controller
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
	var target metav1.Object
	if revision := rollout.Target(); revision != nil {
		target = revision
	}
	rollout.HeldSince = h.heldSince(rollout.DaemonSet, target, rollout.Now)
	stay, why := rollout.HoldsDeletion(pod)
	h.Log.V(1).Info("Deletion by the DaemonSet controller", "namespace", pod.Namespace, "pod", pod.Name, "held", stay, "reason", why.Message)
	return stay, nil
}

func decodePod(req admission.Request, raw runtime.RawExtension) (*corev1.Pod, error) {
	pod, err := decode[corev1.Pod](raw)
	if err != nil {
		return nil, err
	}
	pod.Namespace = req.Namespace
	return pod, nil
}
