package webhook

import (
	"context"
	"errors"

	"golang.org/x/time/rate"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/observe"
)

var errHeldCreation = errors.New("stayput updates the pods of this workload in place, and its ReplicaSet has all its pods already")

// podGates gives new pods the readiness gate, and makes their Ready condition follow it.
type podGates struct {
	holding
	recounts *rate.Limiter
	// See Handlers.
	user                string
	gateReady           func() bool
	apiServerOpensGates bool
}

// mutatePod adds the readiness gate to a new pod of a managed workload: gates cannot be added later. A pod of a StatefulSet that gets no
// gate gets an annotation: one of the two shows that this webhook was asked. In every mode it also removes the marks that came with the
// template: this pod has not moved, and it is no surge pod. It denies a pod that its ReplicaSet does not need.
func (h podGates) mutatePod(ctx context.Context, req admission.Request) (answer, error) {
	kind := kindBy(req, admissionv1.Create)
	if kind == nil {
		return allow(), nil
	}
	pod, err := decodePod(req, req.Object, "spec")
	if err != nil {
		return allow(), err
	}
	needless, err := h.needless(ctx, h.Live, pod)
	if err != nil {
		needless = h.cacheSays(ctx, err, func(ctx context.Context) (bool, error) { return h.needless(ctx, h.Cached, pod) })
	}
	if err != nil && !needless { // so the pod is created, and needs its gate
		h.Log.Error(briefly(err), "Cannot tell whether the ReplicaSet needs another pod", "namespace", pod.Namespace)
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
	case workload != nil && kind.onlyAPIServerOpens:
		return patchIfAny(readiness.Admit(pod)), nil
	}
	return patchIfAny(readiness.WithoutMove(pod)), nil
}

// gates reports whether a pod of the workload gets the gate: the workload is managed, this process could open the gate, and no write is
// refused that would open it.
func (h podGates) gates(ctx context.Context, kind *kind, workload client.Object) (bool, error) {
	if workload == nil || !h.gateReady() || kind.onlyAPIServerOpens && !h.apiServerOpensGates {
		return false, nil
	}
	fallback, err := h.Hold.PersistedFallback(ctx, workload.GetUID())
	return !fallback.Unwritable(), err
}

// needless reports whether the ReplicaSet of the pod has all its pods already, and a leader is alive. The reader reads the mark.
func (h podGates) needless(ctx context.Context, reader observe.Reader, pod *corev1.Pod) (bool, error) {
	if alive, err := h.alive(ctx); err != nil || !alive {
		return false, err
	}
	return h.full(ctx, reader, pod)
}

// managed returns the workload of the pod if it is managed; nil if not. It asks the cache, and the API server only about a workload that is
// too new for the cache.
func (h podGates) managed(ctx context.Context, kind *kind, pod *corev1.Pod) (client.Object, error) {
	for _, reader := range h.cacheThenLive() {
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

// full reports whether the ReplicaSet that a pod is created in takes part in an update and has all its pods already (deployments.Full). The
// cache may not know of the mark yet, nor of pods that have moved there. So the mark is read from the API server. Where the cache says
// that pods are missing, they are counted at the API server as well, as often as recounts allows.
func (h podGates) full(ctx context.Context, reader observe.Reader, pod *corev1.Pod) (bool, error) {
	rs, err := h.marked(ctx, reader, pod)
	if rs == nil || err != nil {
		return false, err
	}
	live, err := h.Cached.LivePodsOf(ctx, rs)
	if err == nil && !deployments.Full(rs, live) && h.recounts.Allow() {
		live, err = reader.LivePodsOf(ctx, rs)
	}
	return err == nil && deployments.Full(rs, live), err
}
