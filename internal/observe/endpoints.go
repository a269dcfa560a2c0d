package observe

import (
	"context"
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/podstate"
)

// mostEndpoints bounds how many endpoints and Services of one namespace are listed at the API server. It is several
// times what Kubernetes is made for.
const mostEndpoints = 50_000

// Endpoints returns what the EndpointSlices of the namespace say about the pods. It lists the whole namespace. Otherwise
// it could not say that no slice has a pod.
func (r Reader) Endpoints(ctx context.Context, namespace string, pods []*corev1.Pod) (podstate.Endpoints, error) {
	listed := &listing{most: mostEndpoints}
	if r.Stores.present() {
		listed.most = math.MaxInt // the cache has all of them in memory already
	}
	for _, empty := range []client.ObjectList{&discoveryv1.EndpointSliceList{}, &corev1.ServiceList{}} {
		if err := r.eachPage(ctx, empty, listed.add, client.UnsafeDisableDeepCopy, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("list EndpointSlices and Services of namespace %s: %w", namespace, err)
		}
	}
	return podstate.EndpointsOf(pods, listed.slices, listed.services), nil
}

// listing has the EndpointSlices and Services of one namespace. They send clients to pods.
type listing struct {
	slices   []discoveryv1.EndpointSlice
	services []corev1.Service
	// size is how many endpoints and Services there are, most is how many there may be.
	size, most int
}

// add counts an object, and keeps what podstate.EndpointsOf needs of it.
func (l *listing) add(object runtime.Object) error {
	switch object := object.(type) {
	case *discoveryv1.EndpointSlice:
		l.size += 1 + len(object.Endpoints)
		slice := discoveryv1.EndpointSlice{AddressType: object.AddressType, Endpoints: object.Endpoints}
		slice.Labels = object.Labels
		l.slices = append(l.slices, slice)
	case *corev1.Service:
		l.size++
		service := corev1.Service{Spec: object.Spec}
		service.Name, service.Spec.Selector = object.Name, podstate.BoundedSelector(object.Spec.Selector)
		l.services = append(l.services, service)
	}
	if l.size > l.most {
		return fmt.Errorf("there are more than %d endpoints and Services", l.most)
	}
	return nil
}
