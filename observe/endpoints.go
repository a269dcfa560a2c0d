package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/serving"
)

// Endpoints reads what the EndpointSlices of the namespace say about those of the pods whose gates are closed. It lists the
// namespace: only that tells that no slice has a pod.
func (r Reader) Endpoints(ctx context.Context, namespace string, pods []*corev1.Pod) (serving.Endpoints, error) {
	var slices discoveryv1.EndpointSliceList
	if err := r.List(ctx, &slices, append(r.shared(), client.InNamespace(namespace))...); err != nil {
		return nil, fmt.Errorf("list EndpointSlices of namespace %s: %w", namespace, err)
	}
	var services corev1.ServiceList
	if err := r.List(ctx, &services, append(r.shared(), client.InNamespace(namespace))...); err != nil {
		return nil, fmt.Errorf("list Services of namespace %s: %w", namespace, err)
	}
	return serving.EndpointsOf(pods, slices.Items, services.Items), nil
}
