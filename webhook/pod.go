package webhook

import (
	"context"
	"errors"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/observe"
)

var errHeldCreation = errors.New("stayput updates the pods of this workload in place, and its ReplicaSet has all its pods already")

// mutatePod adds the readiness gate to a new pod of a managed workload: gates cannot be added later. A pod of a StatefulSet that gets no
// gate gets an annotation: one of the two shows that this webhook was asked. In every mode it also removes the marks that came with the
// template: this pod has not moved, and it is no surge pod. It denies a pod that its ReplicaSet does not need.
func (h Handlers) mutatePod(ctx context.Context, req admission.Request) (answer, error) {
	kind := kindBy(req, admissionv1.Create)
	if kind == nil {
		return allow(), nil
	}
	pod, err := decodePod(req, req.Object)
	if err != nil {
		return allow(), err
	}
	needless, err := h.needless(ctx, pod)
	if err != nil { // so the pod is created, and needs its gate
		h.Log.Error(err, "Cannot tell whether the ReplicaSet needs another pod", "namespace", pod.Namespace)
	}
	if needless {
		return deny(held, apierrors.NewConflict(corev1.Resource("pods"), req.Name, errHeldCreation)), nil
	}
	workload, err := h.managed(ctx, kind, pod)
	if err != nil {
		return allow(), err
	}
	gates, err := h.gates(ctx, kind, workload)
	switch {
	case err != nil:
		return allow(), err
	case gates:
		return patch(gated, append(readiness.WithoutMove(pod), readiness.AddGate(pod)...)), nil
	case workload != nil && kind.ungated != nil:
		return patchIfAny(readiness.Admit(pod)), nil
	}
	return patchIfAny(readiness.WithoutMove(pod)), nil
}

// patchIfAny returns the answer with these operations; without any, the object is allowed as it is.
func patchIfAny(operations []jsonpatch.Operation) answer {
	if len(operations) == 0 {
		return allow()
	}
	return patch(uncounted, operations)
}

// gates reports whether a pod of the workload gets the gate: the workload is managed, this process could open the gate, and no write is
// refused that would open it.
func (h Handlers) gates(ctx context.Context, kind *kind, workload client.Object) (bool, error) {
	if workload == nil || !h.GateReady() || kind.ungated != nil && kind.ungated(h) {
		return false, nil
	}
	fallback, err := h.Hold.PersistedFallback(ctx, workload.GetUID())
	return !fallback.Unwritable(), err
}

// needless reports whether the ReplicaSet of the pod has all its pods already, and a leader is alive.
func (h Handlers) needless(ctx context.Context, pod *corev1.Pod) (bool, error) {
	if alive, err := h.alive(ctx); err != nil || !alive {
		return false, err
	}
	return h.full(ctx, pod)
}

// managed returns the workload of the pod if it is managed; nil if not. It asks the cache, and the API server only about a workload that is
// too new for the cache.
func (h Handlers) managed(ctx context.Context, kind *kind, pod *corev1.Pod) (client.Object, error) {
	for _, reader := range []observe.Reader{h.Cached, h.Live} {
		workload, err := reader.WorkloadOf(ctx, pod)
		if err != nil {
			return nil, err
		}
		if workload != nil {
			mode, err := reader.Mode(ctx, kind.Kind, pod.Namespace, workload.GetLabels())
			if err != nil || !mode.Manages() {
				return nil, err
			}
			return workload, nil
		}
	}
	return nil, nil
}

// validatePod holds deletions by which native controllers would replace pods that are updated in place.
func (h Handlers) validatePod(ctx context.Context, req admission.Request) (answer, error) {
	kind := kindBy(req, admissionv1.Delete)
	if kind == nil {
		return allow(), nil
	}
	pod, err := decodePod(req, req.OldObject)
	if err != nil {
		return allow(), err
	}
	return h.holdDeletion(ctx, req, kind.refuse, func(ctx context.Context) (bool, error) { return kind.stays(h, ctx, pod) })
}

// validateRevision keeps revisionHistoryLimit from deleting the ControllerRevision of a partially patched pod. Native controllers take any
// refusal as an error (cleanupHistory in pkg/controller/daemon/update.go, truncateHistory in
// pkg/controller/statefulset/stateful_set_control.go): all else is done by then, and they retry by themselves.
func (h Handlers) validateRevision(ctx context.Context, req admission.Request) (answer, error) {
	kind := kindBy(req, admissionv1.Delete)
	if kind == nil || kind.keepsRevision == nil {
		return allow(), nil
	}
	revision, err := decode[apps.ControllerRevision](req.OldObject)
	if err != nil {
		return allow(), err
	}
	revision.Namespace = req.Namespace
	return h.holdDeletion(ctx, req, kind.refuse, func(ctx context.Context) (bool, error) {
		return h.either(ctx, func(ctx context.Context, reader observe.Reader) (bool, error) {
			return kind.keepsRevision(h, ctx, reader, revision)
		})
	})
}

// holdDeletion refuses the deletion of an object that is to stay, if a leader is alive.
func (h Handlers) holdDeletion(
	ctx context.Context, req admission.Request, refuse refusal, stays func(context.Context) (bool, error),
) (answer, error) {
	if alive, err := h.alive(ctx); err != nil || !alive {
		return allow(), err
	}
	if stay, err := stays(ctx); err != nil || !stay {
		return allow(), err
	}
	return deny(held, refuse(schema.GroupResource{Group: req.Resource.Group, Resource: req.Resource.Resource}, req.Name)), nil
}

func decodePod(req admission.Request, raw runtime.RawExtension) (*corev1.Pod, error) {
	pod, err := decode[corev1.Pod](raw, "spec")
	if err != nil {
		return nil, err
	}
	pod.Namespace = req.Namespace
	return pod, nil
}
