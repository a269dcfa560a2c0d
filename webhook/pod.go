package webhook

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/observe"
)

// mutatePod gives a pod of a managed Deployment the readiness gate at birth: gates cannot be added later. It also takes off
// the mark of a move that came with the template, since this pod has not been moved.
func (h Handlers) mutatePod(ctx context.Context, req admission.Request) (answer, error) {
	if !by(req, replicaSetController, admissionv1.Create) || !h.GateReady() {
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
	return patch(gated, append(operations, inplace.AddGate(pod)...)), nil
}

// managed asks the cache, and the API server only about a workload too new for the cache.
func (h Handlers) managed(ctx context.Context, pod *corev1.Pod) (bool, error) {
	for _, reader := range []observe.Reader{h.Cached, h.Live} {
		rs, err := reader.ReplicaSetOf(ctx, pod)
		if err != nil {
			return false, err
		}
		if rs == nil {
			continue
		}
		deployment, err := reader.DeploymentOf(ctx, rs)
		if err != nil {
			return false, err
		}
		if deployment != nil {
			mode, err := reader.Mode(ctx, pod.Namespace, deployment.Labels)
			return mode.Manages(), err
		}
	}
	return false, nil
}

// validatePod holds the deletion of a pod while its ReplicaSet is settling. NotFound makes the ReplicaSet controller take the
// pod as gone, without event or back-off (pkg/controller/replicaset/replica_set.go, manageReplicas).
//
// Unlike a denied update it does not come again, so the mark is read live before denying too: whoever takes it off
// wakes the controller by that, and an answer from an older cache would come after the wake-up.
func (h Handlers) validatePod(ctx context.Context, req admission.Request) (answer, error) {
	if !by(req, replicaSetController, admissionv1.Delete) {
		return allow(), nil
	}
	pod, err := decodePod(req, req.OldObject)
	if err != nil {
		return allow(), err
	}
	if stay, err := h.settling(ctx, pod); err != nil || !stay {
		return allow(), err
	}
	gone := apierrors.NewNotFound(corev1.Resource("pods"), req.Name)
	gone.ErrStatus.Message = "held: stayput moves the pods of this ReplicaSet in place"
	return deny(held, gone), nil
}

func (h Handlers) settling(ctx context.Context, pod *corev1.Pod) (bool, error) {
	if alive, err := h.alive(ctx); err != nil || !alive {
		return false, err
	}
	rs, err := h.Live.ReplicaSetOf(ctx, pod)
	if rs == nil || err != nil || !inplace.Settling(rs) {
		return false, err
	}
	// A ReplicaSet that somebody made from another's manifest has the mark, and nobody to take it off.
	deployment, err := h.Live.DeploymentOf(ctx, rs)
	return deployment != nil, err
}

func decodePod(req admission.Request, raw runtime.RawExtension) (*corev1.Pod, error) {
	pod, err := decode[corev1.Pod](raw)
	if err != nil {
		return nil, err
	}
	pod.Namespace = req.Namespace
	return pod, nil
}
