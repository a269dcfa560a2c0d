package main

import (
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/disruption"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/internal/observe"
)

// connection returns the configuration of this process's connection to the API server.
func connection() (*rest.Config, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("no way to the API server: %w", err)
	}
	return over(config), nil
}

// over sets the encodings of a connection. It sends JSON, because the apps/v1 types of inplace/apps keep templates as the raw JSON that was
// sent and are no protobuf messages. It accepts protobuf where it can. There is no client-side rate limit: API priority and fairness limits
// requests.
func over(config *rest.Config) *rest.Config {
	config.ContentType, config.QPS = runtime.ContentTypeJSON, -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return protobuf{next} })
	return rest.AddUserAgent(config, "stayput")
}

// clientOver returns a client that reads from the API server itself, without a cache.
func clientOver(config *rest.Config) (client.Client, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme})
}

// newScheme returns a scheme with exactly the kinds that Stayput reads and writes.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(corev1.AddToScheme, discoveryv1.AddToScheme, coordinationv1.AddToScheme, apps.AddToScheme,
		admissionv1.AddToScheme, autoscalingv2.AddToScheme, policyv1.AddToScheme)
	return scheme, builder.AddToScheme(scheme)
}

// cacheOptions returns options that keep the cache small. ByObject has the types that every replica watches, whether it leads or not;
// reading another kind is an error and starts no watch. The webhooks read all of them but EndpointSlices, Services, PodDisruptionBudgets
// and the webhooks' configuration, which the next leader needs at once.
// The first lists come as streams, object by object (WatchListClient of client-go/features, on by default, from API servers of 1.34 and
// newer), so a list is never in memory as a whole.
func cacheOptions(namespace string, keep *observe.CacheForm) cache.Options {
	byObject := map[client.Object]cache.ByObject{
		&coordinationv1.Lease{}: {
			Namespaces: map[string]cache.Config{namespace: {}},
			Field:      fields.OneTermEqualSelector("metadata.name", inplace.Lease),
		},
		&corev1.ConfigMap{}: {
			Namespaces: map[string]cache.Config{namespace: {}},
			Field:      fields.OneTermEqualSelector("metadata.name", inplace.Fallbacks),
		},
		observe.Webhooks():           {Field: fields.OneTermEqualSelector("metadata.name", inplace.WebhookConfigurations)},
		&corev1.Namespace{}:          {Transform: keep.Namespace},
		&corev1.Pod{}:                {Transform: keep.Pod},
		&corev1.Node{}:               {Transform: withImageNames},
		&discoveryv1.EndpointSlice{}: {Transform: withoutAddresses},
		&corev1.Service{}:            {Transform: withoutPorts},

		&policyv1.PodDisruptionBudget{}: {Transform: trimmedBudget},
	}
	for _, of := range observe.Types() {
		byObject[of.Object()] = cache.ByObject{Transform: keep.App}
	}
	return cache.Options{
		ReaderFailOnMissingInformer: true,
		DefaultTransform:            cache.TransformStripManagedFields(),
		ByObject:                    byObject,
	}
}

// withImageNames drops the fields of a node that Stayput does not read. It keeps the allocatable CPU and memory, which no pod can exceed,
// and the names of the node's images, which need not be pulled first. A kubelet lists 50 images by default, with up to five names each;
// most nodes have the same names.
func withImageNames(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	node.ManagedFields, node.Annotations = nil, nil
	node.Status = corev1.NodeStatus{Allocatable: edit.OnlyResizable(node.Status.Allocatable), Conditions: node.Status.Conditions,
		NodeInfo: node.Status.NodeInfo, Images: slices.Clone(node.Status.Images)}
	for i := range node.Status.Images {
		image := &node.Status.Images[i]
		image.SizeBytes = 0
		for n, name := range image.Names {
			image.Names[n] = observe.Shared(name)
		}
	}
	return node, nil
}

// withoutAddresses keeps the pods, nodes and conditions of endpoints. In slices that do not follow pods, it keeps the pods or addresses
// that they list.
func withoutAddresses(object any) (any, error) {
	slice, ok := object.(*discoveryv1.EndpointSlice)
	if !ok {
		return object, nil
	}
	slice.ObjectMeta, slice.Ports = named(slice.ObjectMeta, discoveryv1.LabelServiceName, discoveryv1.LabelManagedBy), nil
	follows := podstate.SliceFollowsPods(slice)
	for i := range slice.Endpoints {
		endpoint := &slice.Endpoints[i]
		if target := endpoint.TargetRef; target != nil && target.Kind == "Pod" {
			endpoint.Addresses = nil
			endpoint.TargetRef = &corev1.ObjectReference{Kind: target.Kind, Name: target.Name, UID: target.UID}
		}
		endpoint.Zone, endpoint.Hints, endpoint.DeprecatedTopology, endpoint.Hostname = nil, nil, nil, nil
		if !follows {
			endpoint.Conditions, endpoint.NodeName = discoveryv1.EndpointConditions{}, nil
		}
	}
	return slice, nil
}

// withoutPorts keeps which pods a Service selects, and how it treats endpoints.
func withoutPorts(object any) (any, error) {
	service, ok := object.(*corev1.Service)
	if !ok {
		return object, nil
	}
	service.ObjectMeta, service.Status = named(service.ObjectMeta), corev1.ServiceStatus{}
	service.Spec = corev1.ServiceSpec{
		Selector:                 podstate.BoundedSelector(service.Spec.Selector),
		PublishNotReadyAddresses: service.Spec.PublishNotReadyAddresses,
		ExternalTrafficPolicy:    service.Spec.ExternalTrafficPolicy,
		InternalTrafficPolicy:    service.Spec.InternalTrafficPolicy,
	}
	return service, nil
}

// trimmedBudget keeps which pods a PodDisruptionBudget selects, and what the disruption controller has counted.
func trimmedBudget(object any) (any, error) {
	budget, ok := object.(*policyv1.PodDisruptionBudget)
	if !ok {
		return object, nil
	}
	generation := budget.Generation
	budget.ObjectMeta = named(budget.ObjectMeta)
	budget.Generation = generation
	disruption.Trim(budget)
	return budget, nil
}

// named returns metadata with only the identity and the version of an object, and with the given labels.
func named(meta metav1.ObjectMeta, labels ...string) metav1.ObjectMeta {
	kept := metav1.ObjectMeta{Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion,
		CreationTimestamp: meta.CreationTimestamp, DeletionTimestamp: meta.DeletionTimestamp, Labels: map[string]string{}}
	for _, label := range labels {
		if value, has := meta.Labels[label]; has {
			kept.Labels[label] = value
		}
	}
	return kept
}
