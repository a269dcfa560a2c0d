package inplace

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// sliceController is controllerName of pkg/controller/endpointslice/endpointslice_controller.go. Slices of others need not
	// follow the readiness of pods at all.
	sliceController = "endpointslice-controller.k8s.io"
	// drainPatience bounds, with the drain itself, how long a pod whose gate is closed waits for EndpointSlices: they must not
	// keep an update from going on.
	drainPatience = 30 * time.Second
	// unseenAgain is when to look again for a pod that seems to be out of all EndpointSlices, but was not seen to be.
	unseenAgain = time.Second
)

// Endpoints is what EndpointSlices say about the pods of one workload whose gates are closed, by UID.
type Endpoints map[types.UID]Endpoint

// Endpoint is what EndpointSlices say about one pod; the zero Endpoint is of a pod of which nothing was read.
type Endpoint struct {
	// Listed: some EndpointSlice offers the pod to clients.
	Listed bool
	// LastOf is a Service that has no other endpoint to offer, or none on the pod's node although it keeps traffic there; empty if
	// there is no such Service.
	LastOf string
	// OutSince is since when the caller has seen that no EndpointSlice offers the pod; zero if it has not.
	OutSince time.Time
}

// EndpointsOf finds the pods whose gates are closed in the EndpointSlices of their namespace. What is ready there is
// podToEndpoint of k8s.io/endpointslice, utils.go: unless its Service publishes addresses that are not ready, whose slices
// say nothing, an endpoint is ready as long as its pod is Ready and not terminating.
func EndpointsOf(pods []*corev1.Pod, slices []discoveryv1.EndpointSlice, services []corev1.Service) Endpoints {
	endpoints, offers := Endpoints{}, offersOf(slices, services)
	for _, pod := range pods {
		if Closed(pod) {
			endpoints[pod.UID] = endpointOf(pod, offers)
		}
	}
	return endpoints
}

// endpointOf names the first of the Services of which the pod is the last. A Ready pod counts as listed: where it is not yet, it
// may be in a moment.
func endpointOf(pod *corev1.Pod, offers []*offer) Endpoint {
	endpoint := Endpoint{Listed: isTrue(pod, corev1.PodReady)}
	for _, o := range offers {
		known, ready := o.own(pod)
		if !known {
			continue
		}
		endpoint.Listed = endpoint.Listed || ready > 0
		if o.others(pod, ready) == 0 {
			endpoint.LastOf = cmp.Or(endpoint.LastOf, o.service)
		}
	}
	return endpoint
}

// offer is a Service with its endpoints, each counted once however many addresses and ports it has.
type offer struct {
	service string
	// local: traffic stays on the node where it is.
	local bool
	// ready tells of every endpoint whether it is, by identity; total and onNode count those that are.
	ready  map[string]bool
	total  int
	onNode map[string]int
}

// offersOf are the Services whose slices say who serves, by name. One that is not among the services read counts: the wait for
// it is bounded.
func offersOf(all []discoveryv1.EndpointSlice, services []corev1.Service) []*offer {
	byName, offers := map[string]*corev1.Service{}, map[string]*offer{}
	for i := range services {
		byName[services[i].Name] = &services[i]
	}
	for i := range all {
		name := all[i].Labels[discoveryv1.LabelServiceName]
		service := byName[name]
		if !SliceFollowsPods(&all[i]) || service != nil && service.Spec.PublishNotReadyAddresses {
			continue
		}
		if offers[name] == nil {
			offers[name] = &offer{service: name, local: isLocal(service), ready: map[string]bool{}, onNode: map[string]int{}}
		}
		for _, endpoint := range all[i].Endpoints {
			offers[name].add(endpoint)
		}
	}
	return slices.SortedFunc(maps.Values(offers), func(a, b *offer) int { return strings.Compare(a.service, b.service) })
}

// SliceFollowsPods tells whether the native controller maintains the slice.
func SliceFollowsPods(slice *discoveryv1.EndpointSlice) bool {
	return slice.Labels[discoveryv1.LabelManagedBy] == sliceController
}

// isLocal tells whether the Service keeps any of its traffic on the node where it is.
func isLocal(service *corev1.Service) bool {
	return service != nil && (service.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal ||
		service.Spec.InternalTrafficPolicy != nil && *service.Spec.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyLocal)
}

func (o *offer) add(endpoint discoveryv1.Endpoint) {
	// An absent condition is to be taken for true: EndpointConditions in k8s.io/api/discovery/v1.
	ready := endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready
	key := identity(endpoint)
	if ready && !o.ready[key] {
		o.total++
		if endpoint.NodeName != nil {
			o.onNode[*endpoint.NodeName]++
		}
	}
	o.ready[key] = o.ready[key] || ready
}

// identity is what tells endpoints apart: the pod, by UID if that is known, since a namesake is another one.
func identity(endpoint discoveryv1.Endpoint) string {
	switch target := endpoint.TargetRef; {
	case target == nil || target.Kind != "Pod":
		return "address " + strings.Join(endpoint.Addresses, " ")
	case target.UID != "":
		return string(target.UID)
	default:
		return "name " + target.Name
	}
}

// own tells whether the pod is an endpoint, and how many ready ones it is.
func (o *offer) own(pod *corev1.Pod) (known bool, ready int) {
	for _, key := range []string{string(pod.UID), "name " + pod.Name} {
		isReady, has := o.ready[key]
		known = known || has
		if isReady {
			ready++
		}
	}
	return known, ready
}

// others counts the ready endpoints that could stand in for the pod.
func (o *offer) others(pod *corev1.Pod, own int) int {
	if o.local {
		return o.onNode[pod.Spec.NodeName] - own
	}
	return o.total - own
}

// Drained tells whether the containers of a pod whose gate is closed may stop: its kubelet keeps it out, and no EndpointSlice has offered
// it for as long as proxies need to follow. If not, it says when to look again although nothing changes.
//
// There is no wait where the pod is the last endpoint. Closing its gate has taken it out of service, since Ready=False takes
// every pod out of the slices: the sooner it restarts, the shorter the gap. That gate is closed nevertheless: the pod serves
// until the kubelet has reported Ready=False, so the gap begins only then, and were a Ready pod patched, it would be counted as
// updated and available while its old container runs.
func (e Endpoint) Drained(pod *corev1.Pod, drain time.Duration, now time.Time) (bool, time.Duration) {
	if out, wait := keptOut(pod, now); !out || drain == 0 || e.LastOf != "" {
		return out, wait
	}
	overdue, patience := since(condition(pod, ConditionServing).LastTransitionTime.Time, drainPatience+drain, now)
	switch {
	case overdue:
		return true, 0
	case e.Listed:
		return false, patience
	case e.OutSince.IsZero():
		return false, sooner(patience, unseenAgain)
	}
	if over, left := since(e.OutSince, drain, now); !over {
		return false, sooner(patience, left)
	}
	return true, 0
}

// drained tells whether the pod may be patched with new images now, whatever the kind of its workload. This is later than when it
// stopped to be Ready, which is when it counts as missing.
func (d *draft) drained(s *podState, endpoints Endpoints, drain time.Duration, now time.Time) bool {
	if !s.turn {
		return false
	}
	drained, wait := endpoints[s.pod.UID].Drained(s.pod, drain, now)
	d.again(wait)
	return drained
}
