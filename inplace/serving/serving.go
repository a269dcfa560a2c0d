package serving

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/times"
)

const (
	// SliceController is controllerName of pkg/controller/endpointslice/endpointslice_controller.go. Slices of others need not
	// follow the readiness of pods at all.
	SliceController = "endpointslice-controller.k8s.io"
	// DrainPatience bounds, with the drain itself, how long a pod whose gate is closed waits for EndpointSlices: they must not
	// keep an update from going on.
	DrainPatience = 30 * time.Second
	// UnseenAgain is when to look again for a pod that seems to be out of all EndpointSlices, but was not seen to be.
	UnseenAgain = time.Second
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
	// NoClientSent: nothing sends clients to the pod, whether it is ready or not. See SentTo.
	NoClientSent bool
}

// EndpointsOf finds the pods whose gates are closed in the EndpointSlices of their namespace. What is ready there is
// podToEndpoint of k8s.io/endpointslice, utils.go: unless its Service publishes addresses that are not ready, whose slices
// say nothing, an endpoint is ready as long as its pod is Ready and not terminating.
func EndpointsOf(pods []*corev1.Pod, slices []discoveryv1.EndpointSlice, services []corev1.Service) Endpoints {
	endpoints, offers := Endpoints{}, offersOf(slices, services)
	for _, pod := range pods {
		if readiness.Closed(pod) {
			endpoint := endpointOf(pod, offers)
			endpoint.NoClientSent = !SentTo(pod, slices, services)
			endpoints[pod.UID] = endpoint
		}
	}
	return endpoints
}

// SentTo reports whether clients may be sent to the pod: some Service selects it, or some EndpointSlice lists it, ready or not and whoever
// maintains it.
func SentTo(pod *corev1.Pod, all []discoveryv1.EndpointSlice, services []corev1.Service) bool {
	for i := range services {
		if Selects(&services[i], pod) {
			return true
		}
	}
	for i := range all {
		if Lists(&all[i], pod) {
			return true
		}
	}
	return false
}

const (
	// longestSelector is how many labels of a Service's selector are kept: several times what any has.
	longestSelector = 16
	// anyPod is a label that no selector has, since it would be none.
	anyPod = ""
)

// Kept is what is kept of a Service's selector. One that is too long is taken to select every pod, which only has pods drain.
func Kept(selector map[string]string) map[string]string {
	if len(selector) > longestSelector {
		return map[string]string{anyPod: ""}
	}
	return selector
}

// Selects reports whether the Service selects the pod. One without a selector selects nothing.
func Selects(service *corev1.Service, pod *corev1.Pod) bool {
	if _, every := service.Spec.Selector[anyPod]; every {
		return true
	}
	for key, value := range service.Spec.Selector {
		if has, labelled := pod.Labels[key]; !labelled || has != value {
			return false
		}
	}
	return len(service.Spec.Selector) > 0
}

// SameSelector reports whether both Services select the same pods; nil is one that is not there.
func SameSelector(a, b *corev1.Service) bool {
	return a != nil && b != nil && maps.Equal(a.Spec.Selector, b.Spec.Selector)
}

// Lists reports whether the pod is among the endpoints. Nobody knows whom a name stands for.
func Lists(slice *discoveryv1.EndpointSlice, pod *corev1.Pod) bool {
	for i := range slice.Endpoints {
		switch endpoint := &slice.Endpoints[i]; {
		case isPod(endpoint.TargetRef):
			target := endpoint.TargetRef
			if target.UID == pod.UID || target.UID == "" && target.Name == pod.Name {
				return true
			}
		case slice.AddressType == discoveryv1.AddressTypeFQDN, hasAddress(pod, endpoint.Addresses):
			return true
		}
	}
	return false
}

// Unlisted are the endpoints that the slice had before and has not after the change; nil is one that is not there.
func Unlisted(before, after *discoveryv1.EndpointSlice) []discoveryv1.Endpoint {
	still := map[string]bool{}
	if after != nil {
		for _, endpoint := range after.Endpoints {
			still[identity(endpoint)] = true
		}
	}
	var left []discoveryv1.Endpoint
	for _, endpoint := range before.Endpoints {
		if !still[identity(endpoint)] {
			left = append(left, discoveryv1.Endpoint{TargetRef: endpoint.TargetRef, Addresses: endpoint.Addresses})
		}
	}
	return left
}

func isPod(target *corev1.ObjectReference) bool { return target != nil && target.Kind == "Pod" }

func hasAddress(pod *corev1.Pod, addresses []string) bool {
	return slices.ContainsFunc(pod.Status.PodIPs, func(ip corev1.PodIP) bool {
		return slices.ContainsFunc(addresses, func(address string) bool { return sameAddress(address, ip.IP) })
	})
}

// sameAddress compares addresses however they are written.
func sameAddress(a, b string) bool {
	one, err := netip.ParseAddr(a)
	other, otherErr := netip.ParseAddr(b)
	return a == b || err == nil && otherErr == nil && one.Unmap() == other.Unmap()
}

// endpointOf names the first of the Services of which the pod is the last. A Ready pod counts as listed: where it is not yet, it
// may be in a moment.
func endpointOf(pod *corev1.Pod, offers []*offer) Endpoint {
	endpoint := Endpoint{Listed: conditions.IsTrue(pod, corev1.PodReady)}
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

// SliceFollowsPods reports whether the native controller maintains the slice.
func SliceFollowsPods(slice *discoveryv1.EndpointSlice) bool {
	return slice.Labels[discoveryv1.LabelManagedBy] == SliceController
}

// isLocal reports whether the Service keeps any of its traffic on the node where it is.
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
	case !isPod(target):
		return "address " + strings.Join(endpoint.Addresses, " ")
	case target.UID != "":
		return string(target.UID)
	default:
		return "name " + target.Name
	}
}

// own reports whether the pod is an endpoint, and how many ready ones it is.
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

// Drained reports whether the containers of a pod whose gate is closed may stop: its kubelet keeps it out, and no EndpointSlice has offered
// it for as long as proxies need to follow. If not, it says when to look again although nothing changes.
//
// What goes on serving after the patch need not be waited for before it: servesOn is how long that is.
//
// There is no wait where nobody is sent to the pod, and none where it is the last endpoint. Closing its gate has taken it out of service, since Ready=False takes
// every pod out of the slices: the sooner it restarts, the shorter the gap. That gate is closed nevertheless: the pod serves
// until the kubelet has reported Ready=False, so the gap begins only then, and were a Ready pod patched, it would be counted as
// updated and available while its old container runs.
func (e Endpoint) Drained(pod *corev1.Pod, drain, servesOn time.Duration, now time.Time) (bool, time.Duration) {
	if out, wait := readiness.KeptOut(pod, now); !out || drain == 0 || e.LastOf != "" || e.NoClientSent {
		return out, wait
	}
	overdue, patience := times.Since(conditions.Condition(pod, inplace.ConditionServing).LastTransitionTime.Time, DrainPatience+drain, now)
	switch {
	case overdue:
		return true, 0
	case e.Listed:
		return false, patience
	case e.OutSince.IsZero():
		return false, times.Sooner(patience, UnseenAgain)
	}
	if over, left := times.Since(e.OutSince, drain-servesOn, now); !over {
		return false, times.Sooner(patience, left)
	}
	return true, 0
}
