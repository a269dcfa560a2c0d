package podstate

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/readiness"
)

// What follows decides from EndpointSlices and Services whether clients are still sent to a pod that is out of service, and so
// when the pod's containers may stop.
//
// It knows what was listed and nothing of the update: it does not matter why the pod is to stop.
//
// The EndpointSlices that count for a drain are those of the native controller, by the pod's UID, except those of Services that publish
// addresses which are not ready. A pod to which nothing sends clients does not wait (SentTo). For that, the slices of all
// controllers count, but only those in the pod's own namespace. A pod's drain is one predicate for all kinds of workloads
// (Endpoint.Drained). The pod counts as unavailable from the moment it is taken out.

const (
	// SliceController is controllerName in pkg/controller/endpointslice/endpointslice_controller.go. EndpointSlices of other
	// controllers need not follow the readiness of pods.
	SliceController = "endpointslice-controller.k8s.io"
	// DrainPatience plus the drain is how long a pod waits for EndpointSlices at most, and for a webhook that keeps it out of service:
	// they must not stop an update.
	DrainPatience = 30 * time.Second
)

// Endpoints is what EndpointSlices say about the pods of one workload, by UID.
type Endpoints map[types.UID]Endpoint

// Endpoint is what EndpointSlices say about one pod. The zero Endpoint is that of a pod about which nothing was read.
type Endpoint struct {
	// Listed says that an EndpointSlice offers the pod to clients.
	Listed bool
	// LastOf is a Service of which the pod is the last ready endpoint, or the last on its node if the Service keeps traffic there. It
	// is empty if there is no such Service. Such a pod is not taken out of service: it serves until its containers stop, as natively.
	// Proxies fall back to pods that end, but not to pods that are merely not Ready.
	LastOf string
	// OutSince is when the caller first saw that no EndpointSlice offers the pod. It is zero if the caller has not seen that.
	OutSince time.Time
	// NoClientSent says that nothing sends clients to the pod, whether it is ready or not. See SentTo.
	NoClientSent bool
}

// EndpointsOf returns what the EndpointSlices of the namespace say about the pods that are out of service, and about those that serve as
// endpoints of a Service. The native rule is podToEndpoint of k8s.io/endpointslice, utils.go: an endpoint is ready as long as its
// pod is Ready and not terminating. The EndpointSlices of a Service that publishes addresses that are not ready say nothing about
// readiness.
func EndpointsOf(pods []*corev1.Pod, slices []discoveryv1.EndpointSlice, services []corev1.Service) Endpoints {
	endpoints, offers := Endpoints{}, offersOf(slices, services, pods)
	for _, pod := range pods {
		out := readiness.Out(pod)
		if !out && !apps.IsTrue(pod, corev1.PodReady) {
			continue
		}
		endpoint, offered := endpointOf(pod, offers)
		endpoint.NoClientSent = out && !SentTo(pod, slices, services)
		if out || offered {
			endpoints[pod.UID] = endpoint
		}
	}
	return endpoints
}

// SentTo reports whether clients may be sent to the pod: a Service selects it, or an EndpointSlice of any controller lists it,
// ready or not.
func SentTo(pod *corev1.Pod, all []discoveryv1.EndpointSlice, services []corev1.Service) bool {
	selects := func(service corev1.Service) bool { return ServiceSelects(&service, pod) }
	return slices.ContainsFunc(services, selects) || slices.ContainsFunc(all, func(slice discoveryv1.EndpointSlice) bool {
		return slices.ContainsFunc(slice.Endpoints, func(endpoint discoveryv1.Endpoint) bool { return isOf(endpoint, pod) })
	})
}

// isOf reports whether the endpoint is the pod, as its target or its address says.
func isOf(endpoint discoveryv1.Endpoint, pod *corev1.Pod) bool {
	if target := endpoint.TargetRef; isPod(target) {
		return target.UID == pod.UID || target.UID == "" && target.Name == pod.Name
	}
	return slices.ContainsFunc(pod.Status.PodIPs, func(ip corev1.PodIP) bool { return slices.Contains(endpoint.Addresses, ip.IP) })
}

const (
	// longestSelector is how many labels of a Service's selector are kept. It is several times what real selectors have.
	longestSelector = 16
	// anyPod is a label key that no selector has, because it is not a valid key.
	anyPod = ""
)

// BoundedSelector returns what is kept of a Service's selector. A selector that is too long counts as selecting every pod. The only effect
// is that pods drain.
func BoundedSelector(selector map[string]string) map[string]string {
	if len(selector) > longestSelector {
		return map[string]string{anyPod: ""}
	}
	return selector
}

// ServiceSelects reports whether the Service selects the pod. A Service without a selector selects nothing.
func ServiceSelects(service *corev1.Service, pod *corev1.Pod) bool {
	selector := service.Spec.Selector
	_, every := selector[anyPod]
	return every || len(selector) > 0 && labels.ValidatedSetSelector(selector).Matches(labels.Set(pod.Labels))
}

func isPod(target *corev1.ObjectReference) bool { return target != nil && target.Kind == "Pod" }

// endpointOf returns what the Services offer of the pod, and whether it is an endpoint of any. LastOf is the first of the Services of which
// the pod is the last endpoint. A Ready pod counts as listed: if it is not listed yet, it may be in a moment.
func endpointOf(pod *corev1.Pod, offers []*offer) (endpoint Endpoint, offered bool) {
	endpoint = Endpoint{Listed: apps.IsTrue(pod, corev1.PodReady)}
	for _, o := range offers {
		ready, known := o.listed[string(pod.UID)]
		if !known {
			continue
		}
		offered = true
		endpoint.Listed = endpoint.Listed || ready
		if o.others(pod) == 0 {
			endpoint.LastOf = cmp.Or(endpoint.LastOf, o.service)
		}
	}
	return endpoint, offered
}

// offer is a Service with its endpoints. Each endpoint counts once, however many addresses and ports it has.
type offer struct {
	service string
	// of is the Service; nil if it was not read.
	of *corev1.Service
	// listed has every endpoint of the slices, by identity, and whether it is ready.
	listed map[string]bool
	// serving has the nodes of the endpoints that serve, by identity, and onNode counts them. The slices may not show yet that one of the pods
	// serves, or no longer does.
	serving map[string]string
	onNode  map[string]int
}

// offersOf returns the Services whose EndpointSlices follow the readiness of pods, sorted by name. A Service that was not read
// counts as well: the wait for it is bounded.
func offersOf(all []discoveryv1.EndpointSlice, services []corev1.Service, pods []*corev1.Pod) []*offer {
	byName, offers, uids := map[string]*corev1.Service{}, map[string]*offer{}, map[string]string{}
	for i := range services {
		byName[services[i].Name] = &services[i]
	}
	for _, pod := range pods {
		uids[pod.Name] = string(pod.UID)
	}
	for i := range all {
		name := all[i].Labels[discoveryv1.LabelServiceName]
		service := byName[name]
		if !SliceFollowsPods(&all[i]) || service != nil && service.Spec.PublishNotReadyAddresses {
			continue
		}
		if offers[name] == nil {
			offers[name] = &offer{service: name, of: service, listed: map[string]bool{}, serving: map[string]string{}, onNode: map[string]int{}}
		}
		for _, endpoint := range all[i].Endpoints {
			offers[name].add(endpoint, uids)
		}
	}
	sorted := slices.SortedFunc(maps.Values(offers), func(a, b *offer) int { return strings.Compare(a.service, b.service) })
	for _, o := range sorted {
		o.observe(pods)
	}
	return sorted
}

// SliceFollowsPods reports whether the native controller maintains the slice.
func SliceFollowsPods(slice *discoveryv1.EndpointSlice) bool {
	return slice.Labels[discoveryv1.LabelManagedBy] == SliceController
}

// add adds an endpoint. Its identity is the pod's UID if that is known, because another pod may have the same name.
func (o *offer) add(endpoint discoveryv1.Endpoint, uids map[string]string) {
	key := "address " + strings.Join(endpoint.Addresses, " ")
	if target := endpoint.TargetRef; isPod(target) {
		key = cmp.Or(string(target.UID), uids[target.Name], "name "+target.Name)
	}
	// An absent condition means true: EndpointConditions in k8s.io/api/discovery/v1.
	ready := ptr.Deref(endpoint.Conditions.Ready, true)
	if o.listed[key] = o.listed[key] || ready; ready {
		o.serving[key] = ptr.Deref(endpoint.NodeName, "")
	}
}

// observe takes what is known of the pods in place of what the slices say, and counts.
func (o *offer) observe(pods []*corev1.Pod) {
	for _, pod := range pods {
		switch ready := apps.IsTrue(pod, corev1.PodReady); {
		case !ready:
			delete(o.serving, string(pod.UID))
		case o.of != nil && ServiceSelects(o.of, pod):
			o.serving[string(pod.UID)] = pod.Spec.NodeName
		}
	}
	for _, node := range o.serving {
		o.onNode[node]++
	}
}

// others returns the number of endpoints that can replace the pod: all, or those on its node if the Service keeps any of its traffic on the
// node where it arrives.
func (o *offer) others(pod *corev1.Pod) int {
	others := len(o.serving)
	if spec := ptr.Deref(o.of, corev1.Service{}).Spec; spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal ||
		ptr.Deref(spec.InternalTrafficPolicy, "") == corev1.ServiceInternalTrafficPolicyLocal {
		others = o.onNode[pod.Spec.NodeName]
	}
	if _, serves := o.serving[string(pod.UID)]; serves {
		others--
	}
	return others
}

// Drained reports whether the containers of a pod may stop: it is out of service, and no EndpointSlice has offered it for as long as
// proxies need to follow. If not, it returns when to look again although nothing changes.
//
// The argument servesOn is how long the containers keep serving after the patch. That part of the drain happens after the patch and
// is not waited for before.
//
// There is no wait if no clients are sent to the pod, and none if the pod has become the last endpoint: the sooner it restarts, the shorter
// the gap.
func (e Endpoint) Drained(pod *corev1.Pod, drain, servesOn time.Duration, now time.Time) (bool, time.Duration) {
	switch {
	case !readiness.Out(pod):
		return false, 0
	case drain == 0 || e.LastOf != "" || e.NoClientSent:
		return true, 0
	}
	overdue, patience := inplace.Since(readiness.OutAt(pod), DrainPatience+drain, now)
	switch {
	case overdue:
		return true, 0
	case e.Listed:
		return false, patience
	case e.OutSince.IsZero():
		return false, inplace.Sooner(patience, inplace.LookAgain)
	}
	if over, left := inplace.Since(e.OutSince, drain-servesOn, now); !over {
		return false, inplace.Sooner(patience, left)
	}
	return true, 0
}
