package webhook

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/internal/observe"
)

var errHeldCreation = errors.New("stayput updates the pods of this workload in place, and its ReplicaSet has all its pods already")

// validateNewPod denies a pod that its ReplicaSet does not need.
func (h Handlers) validateNewPod(ctx context.Context, req admission.Request) (answer, error) {
	pod, err := decodePod(req, req.Object)
	if err != nil {
		return allow(), err
	}
	needless, err := h.full(ctx, h.Live, pod)
	if err != nil && h.cacheSays(ctx, err, func(ctx context.Context) (bool, error) { return h.full(ctx, h.Cached, pod) }) {
		needless, err = true, nil
	}
	if !needless {
		return allow(), err
	}
	return deny(held, apierrors.NewConflict(corev1.Resource("pods"), req.Name, errHeldCreation)), nil
}

// full reports whether the ReplicaSet that a pod is created in takes part in an update and has all its pods already (deployments.Full). The
// cache may not know of the mark yet, nor of pods that have moved there. So the mark is read from the API server. Where the cache does
// not say that all pods are there, they are counted at the API server as well, as often as recounts allows.
func (h Handlers) full(ctx context.Context, reader observe.Reader, pod *corev1.Pod) (bool, error) {
	if marked, err := h.marked(ctx, reader, pod); err != nil || !marked {
		return false, err
	}
	rs, err := reader.ReplicaSetOf(ctx, pod)
	if rs == nil || err != nil {
		return false, err
	}
	live, err := h.Cached.LivePodsOf(ctx, rs)
	if !deployments.Full(rs, live) && h.recounts.Allow() {
		live, err = reader.LivePodsOf(ctx, rs)
	}
	return err == nil && deployments.Full(rs, live), err
}
