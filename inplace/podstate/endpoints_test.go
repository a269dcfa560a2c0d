package podstate_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
)

// TestEndpointsOf asks about pod p on node n1, which is out of service.
func TestEndpointsOf(t *testing.T) {
	elsewhere := func(e *discoveryv1.Endpoint) { e.NodeName = new("n2") }
	nilReady := func(e *discoveryv1.Endpoint) { e.Conditions.Ready = nil }
	byName := func(e *discoveryv1.Endpoint) { e.TargetRef.UID = "" }
	terminating := func(e *discoveryv1.Endpoint) { // podToEndpoint: never ready, perhaps serving
		e.Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}
	}
	type all = []discoveryv1.EndpointSlice
	for name, c := range map[string]struct {
		shown    all
		services []corev1.Service
		want     podstate.Endpoint
	}{
		"no slice":        {nil, nil, podstate.Endpoint{}},
		"slice of others": {all{fixture.Slice("a", fixture.Endpoint("q", true))}, nil, podstate.Endpoint{}},
		"offered": {all{fixture.Slice("a", fixture.Endpoint("p", true), fixture.Endpoint("q", true))}, nil,
			podstate.Endpoint{Listed: true}},
		"out": {all{fixture.Slice("a", fixture.Endpoint("p", false), fixture.Endpoint("q", true))}, nil, podstate.Endpoint{}},
		"nil counts as ready": {all{fixture.Slice("a", changed(fixture.Endpoint("p", true), nilReady), fixture.Endpoint("q", true))}, nil,
			podstate.Endpoint{Listed: true}},
		"nil of another, too": {all{fixture.Slice("a", fixture.Endpoint("p", false), changed(fixture.Endpoint("q", true), nilReady))}, nil,
			podstate.Endpoint{}},
		"by name, without UID": {all{fixture.Slice("a", changed(fixture.Endpoint("p", true), byName), fixture.Endpoint("q", true))}, nil,
			podstate.Endpoint{Listed: true}},
		"a namesake": {all{fixture.Slice("a",
			changed(fixture.Endpoint("p", true), func(e *discoveryv1.Endpoint) { e.TargetRef.UID = "earlier" }))}, nil, podstate.Endpoint{}},
		"a foreign slice": {all{fixture.Foreign("a", fixture.Endpoint("p", true)),
			fixture.Slice("a", fixture.Endpoint("p", false), fixture.Endpoint("q", true))}, nil,
			podstate.Endpoint{}},
		"only a foreign slice": {all{fixture.Foreign("a", fixture.Endpoint("p", true))}, nil, podstate.Endpoint{}},
		"published anyway": {all{fixture.Slice("a", fixture.Endpoint("p", true))}, []corev1.Service{fixture.Service("a", publishing)},
			podstate.Endpoint{}},
		"a Service not read": {all{fixture.Slice("a", fixture.Endpoint("p", true), fixture.Endpoint("q", true))},
			[]corev1.Service{fixture.Service("b", publishing)},
			podstate.Endpoint{Listed: true}},
		"one of two Services": {all{fixture.Slice("a", fixture.Endpoint("p", false), fixture.Endpoint("q", true)),
			fixture.Slice("b", fixture.Endpoint("p", true), fixture.Endpoint("q", true))}, nil, podstate.Endpoint{Listed: true}},
		"out of two Services": {all{fixture.Slice("a", fixture.Endpoint("p", false), fixture.Endpoint("q", true)),
			fixture.Slice("b", fixture.Endpoint("p", false), fixture.Endpoint("q", true))}, nil, podstate.Endpoint{}},
		"one of two slices": {all{fixture.Slice("a", fixture.Endpoint("p", false), fixture.Endpoint("q", true)),
			fixture.Slice("a", fixture.Endpoint("p", true), fixture.Endpoint("q", true))}, nil, podstate.Endpoint{Listed: true}},
		"last and offered": {all{fixture.Slice("a", fixture.Endpoint("p", true), fixture.Endpoint("q", false))}, nil,
			podstate.Endpoint{Listed: true, LastOf: "a"}},
		"last and out": {all{fixture.Slice("a", fixture.Endpoint("p", false), fixture.Endpoint("q", false))}, nil,
			podstate.Endpoint{LastOf: "a"}},
		"last but for one gone": {all{fixture.Slice("a", fixture.Endpoint("p", false), changed(fixture.Endpoint("q", false), terminating))}, nil,
			podstate.Endpoint{LastOf: "a"}},
		"last in two slices": {all{fixture.Slice("a", fixture.Endpoint("p", true)), fixture.Slice("a", fixture.Endpoint("p", true))}, nil,
			podstate.Endpoint{Listed: true, LastOf: "a"}},
		"others in another slice": {all{fixture.Slice("a", fixture.Endpoint("p", false)), fixture.Slice("a", fixture.Endpoint("q", true))}, nil,
			podstate.Endpoint{}},
		"last of one of two": {all{fixture.Slice("b", fixture.Endpoint("p", false)),
			fixture.Slice("a", fixture.Endpoint("p", false), fixture.Endpoint("q", true))}, nil,
			podstate.Endpoint{LastOf: "b"}},
		"last beside a foreign slice": {all{fixture.Slice("a", fixture.Endpoint("p", false)),
			fixture.Foreign("a", fixture.Endpoint("q", true))}, nil,
			podstate.Endpoint{LastOf: "a"}},
		"last of one that publishes": {all{fixture.Slice("a", fixture.Endpoint("p", true)),
			fixture.Slice("b", fixture.Endpoint("p", false), fixture.Endpoint("q", true))},
			[]corev1.Service{fixture.Service("a", publishing), fixture.Service("b")}, podstate.Endpoint{}},
		"last on its node from outside": {all{fixture.Slice("a", fixture.Endpoint("p", false), changed(fixture.Endpoint("q", true), elsewhere))},
			[]corev1.Service{fixture.Service("a", localOutside)}, podstate.Endpoint{LastOf: "a"}},
		"last on its node inside": {all{fixture.Slice("a", fixture.Endpoint("p", false), changed(fixture.Endpoint("q", true), elsewhere))},
			[]corev1.Service{fixture.Service("a", localInside)}, podstate.Endpoint{LastOf: "a"}},
		"not last on its node": {all{fixture.Slice("a", fixture.Endpoint("p", false), fixture.Endpoint("q", true))},
			[]corev1.Service{fixture.Service("a", localInside)},
			podstate.Endpoint{}},
		"last on its node, anywhere": {all{fixture.Slice("a", fixture.Endpoint("p", false), changed(fixture.Endpoint("q", true), elsewhere))},
			[]corev1.Service{fixture.Service("a")}, podstate.Endpoint{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v1"})
			pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), fixture.Out)
			pod.Spec.NodeName = "n1"
			got := podstate.EndpointsOf(r.Seen.Pods, c.shown, c.services)[pod.UID]
			if got.NoClientSent = false; got != c.want { // TestSentTo tests it
				t.Errorf("it is %+v, not %+v", got, c.want)
			}
		})
	}
}

// TestSentTo asks about pod p with address 10.0.0.1 and label app=web.
func TestSentTo(t *testing.T) {
	type all = []discoveryv1.EndpointSlice
	byHand := func(addresses ...string) discoveryv1.EndpointSlice {
		return fixture.Foreign("a", discoveryv1.Endpoint{Addresses: addresses})
	}
	for name, c := range map[string]struct {
		shown    all
		services []corev1.Service
		want     bool
	}{
		"nothing there":          {nil, nil, false},
		"selected":               {nil, []corev1.Service{fixture.Service("a", fixture.Selecting("app", "web"))}, true},
		"selected by the second": {nil, []corev1.Service{fixture.Service("a"), fixture.Service("b", fixture.Selecting("app", "web"))}, true},
		"selected and published": {nil, []corev1.Service{fixture.Service("a", fixture.Selecting("app", "web"), publishing)}, true},
		"others are selected":    {nil, []corev1.Service{fixture.Service("a", fixture.Selecting("app", "shop"))}, false},
		"no selector":            {nil, []corev1.Service{fixture.Service("a")}, false},
		"listed, ready":          {all{fixture.Slice("a", fixture.Endpoint("p", true))}, nil, true},
		"listed, not ready":      {all{fixture.Slice("a", fixture.Endpoint("q", true), fixture.Endpoint("p", false))}, nil, true},
		"listed by name, without UID": {all{fixture.Slice("a",
			changed(fixture.Endpoint("p", true), func(e *discoveryv1.Endpoint) { e.TargetRef.UID = "" }))},
			nil, true},
		"a namesake": {all{fixture.Slice("a",
			changed(fixture.Endpoint("p", true), func(e *discoveryv1.Endpoint) { e.TargetRef.UID = "earlier" }))}, nil, false},
		"another pod of its address": {all{fixture.Slice("a", fixture.Endpoint("q", true))}, nil, false},
		"by a mesh":                  {all{fixture.Foreign("a", fixture.Endpoint("p", true))}, nil, true},
		"by hand":                    {all{byHand("10.0.0.7", "10.0.0.1")}, nil, true},
		"others by hand":             {all{byHand("10.0.0.7")}, nil, false},
		"of another kind": {all{fixture.Foreign("a", changed(fixture.Endpoint("q", true), func(e *discoveryv1.Endpoint) {
			e.TargetRef.Kind = "Machine"
		}))}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v1"})
			pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), fixture.Out)
			pod.Labels, pod.Status.PodIPs = map[string]string{"app": "web"}, []corev1.PodIP{{IP: "10.0.0.1"}}
			if got := podstate.SentTo(pod, c.shown, c.services); got != c.want {
				t.Errorf("clients are sent to it: %t, not %t", got, c.want)
			}
			if got := podstate.EndpointsOf(r.Seen.Pods, c.shown, c.services)[pod.UID].NoClientSent; got == c.want {
				t.Errorf("the endpoint says that no client is sent to it: %t", got)
			}
		})
	}
}

// TestLongSelectors: a Service whose selector is too long to keep must not count as one that sends no clients, or pods would not drain.
func TestLongSelectors(t *testing.T) {
	for length, selects := range map[int]bool{0: false, 16: false, 17: true} {
		selector := map[string]string{}
		for i := range length {
			selector[fmt.Sprint("label", i)] = "x"
		}
		service := fixture.Service("a")
		service.Spec.Selector = podstate.BoundedSelector(selector)
		if got := podstate.SentTo(&corev1.Pod{}, nil, []corev1.Service{service}); got != selects {
			t.Errorf("a selector of %d labels sends clients to the pod: %t", length, got)
		}
	}
}

// TestEndpointsOfPodsThatServe: only those that are the last endpoint count. The others would have the API server asked since when they are
// out.
func TestEndpointsOfPodsThatServe(t *testing.T) {
	r := fixture.New(4, fixture.App{Image: "v1"})
	rs := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 4)
	fixture.PodOf(r, "serves", rs)
	fixture.PodOf(r, "last", rs)
	fixture.PodOf(r, "unready", rs, fixture.Unready)
	fixture.PodOf(r, "out", rs, fixture.Out)
	got := podstate.EndpointsOf(r.Seen.Pods, []discoveryv1.EndpointSlice{
		fixture.Slice("a", fixture.Endpoint("serves", true), fixture.Endpoint("unready", true), fixture.Endpoint("out", true)),
		fixture.Slice("b", fixture.Endpoint("last", true), fixture.Endpoint("unready", false))}, nil)
	want := podstate.Endpoints{"serves": {Listed: true, LastOf: "a"}, "last": {Listed: true, LastOf: "b"}, "out": {Listed: true}}
	if !maps.Equal(got, want) {
		t.Errorf("endpoints are %v, not %v", got, want)
	}
}

// TestPodsThatLeaveReplaceNone: a slice may still offer a pod that has just been taken out of service.
func TestPodsThatLeaveReplaceNone(t *testing.T) {
	r := fixture.New(2, fixture.App{Image: "v1"})
	rs := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 2)
	fixture.PodOf(r, "p", rs)
	fixture.PodOf(r, "other", rs, fixture.Out)
	slice := fixture.Slice("a", fixture.Endpoint("p", true), fixture.Endpoint("other", true))
	if got := podstate.EndpointsOf(r.Seen.Pods, []discoveryv1.EndpointSlice{slice}, nil); got["p"].LastOf != "a" || !got["other"].Listed {
		t.Errorf("endpoints are %v", got)
	}
}

// TestReadyPodsReplaceTheLastEndpoint: a slice may not have followed yet when another pod of the Service is Ready.
func TestReadyPodsReplaceTheLastEndpoint(t *testing.T) {
	for name, test := range map[string]struct {
		other  func(*corev1.Pod)
		change func(*corev1.ServiceSpec)
		last   string
	}{
		"another is Ready":                    {func(*corev1.Pod) {}, func(*corev1.ServiceSpec) {}, ""},
		"another is not Ready":                {fixture.Unready, func(*corev1.ServiceSpec) {}, "a"},
		"another is out":                      {fixture.Out, func(*corev1.ServiceSpec) {}, "a"},
		"another is of no Service":            {func(pod *corev1.Pod) { pod.Labels = nil }, func(*corev1.ServiceSpec) {}, "a"},
		"another is on another node":          {func(pod *corev1.Pod) { pod.Spec.NodeName = "n2" }, localInside, "a"},
		"another is on that node":             {func(*corev1.Pod) {}, localInside, ""},
		"another is on another node, all may": {func(pod *corev1.Pod) { pod.Spec.NodeName = "n2" }, func(*corev1.ServiceSpec) {}, ""},
	} {
		r := fixture.New(2, fixture.App{Image: "v1"})
		rs := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 2)
		onNode := func(pod *corev1.Pod) { pod.Spec.NodeName = "n1" }
		fixture.PodOf(r, "p", rs, onNode)
		fixture.PodOf(r, "other", rs, onNode, test.other)
		slice := fixture.Slice("a", fixture.Endpoint("p", true))
		slice.Endpoints[0].NodeName = new("n1")
		got := podstate.EndpointsOf(r.Seen.Pods, []discoveryv1.EndpointSlice{slice},
			[]corev1.Service{fixture.Service("a", fixture.Selecting("app", "web"), test.change)})
		if last := got["p"].LastOf; last != test.last {
			t.Errorf("%s: the pod is the last of %q", name, last)
		}
	}
}

func TestDrained(t *testing.T) {
	ready := fixture.ConditionIs(corev1.PodReady, corev1.ConditionTrue)
	ago := func(d time.Duration) time.Time { return fixture.Start.Add(-d) }
	for name, c := range map[string]struct {
		endpoint podstate.Endpoint
		drain    time.Duration
		out      time.Duration // how long it has been out of service
		change   func(*corev1.Pod)
		want     bool
		again    time.Duration
	}{
		"Ready":                    {podstate.Endpoint{OutSince: ago(5 * time.Second)}, 2 * time.Second, 5 * time.Second, ready, false, 0},
		"Ready without drain":      {podstate.Endpoint{}, 0, 5 * time.Second, ready, false, 0},
		"Ready and overdue":        {podstate.Endpoint{}, 2 * time.Second, time.Minute, ready, false, 0},
		"not ready":                {podstate.Endpoint{}, 0, 0, fixture.Unready, false, 0},
		"without drain":            {podstate.Endpoint{Listed: true}, 0, 0, nil, true, 0},
		"offered":                  {podstate.Endpoint{Listed: true}, 2 * time.Second, time.Second, nil, false, 31 * time.Second},
		"offered, almost too long": {podstate.Endpoint{Listed: true}, 2 * time.Second, 31 * time.Second, nil, false, time.Second},
		"offered for too long":     {podstate.Endpoint{Listed: true}, 2 * time.Second, 32 * time.Second, nil, true, 0},
		"offered after having been out": {podstate.Endpoint{Listed: true, OutSince: ago(time.Minute)}, 2 * time.Second, 0, nil, false,
			32 * time.Second},
		"not seen to be out": {podstate.Endpoint{}, 2 * time.Second, time.Second, nil, false, inplace.LookAgain},
		"out just now":       {podstate.Endpoint{OutSince: fixture.Start}, 2 * time.Second, time.Second, nil, false, 2 * time.Second},
		"out not long enough": {podstate.Endpoint{OutSince: ago(1500 * time.Millisecond)}, 2 * time.Second, 3 * time.Second, nil, false,
			500 * time.Millisecond},
		"out long enough": {podstate.Endpoint{OutSince: ago(2 * time.Second)}, 2 * time.Second, 3 * time.Second, nil, true, 0},
		"out late": {podstate.Endpoint{OutSince: ago(time.Second)}, 2 * time.Second, 31500 * time.Millisecond, nil, false,
			500 * time.Millisecond},
		"last":                         {podstate.Endpoint{Listed: true, LastOf: "a"}, 2 * time.Second, 0, nil, true, 0},
		"no client is sent":            {podstate.Endpoint{NoClientSent: true}, 2 * time.Second, 0, nil, true, 0},
		"no client is sent, and Ready": {podstate.Endpoint{NoClientSent: true}, 2 * time.Second, 0, ready, false, 0},
		"last and Ready":               {podstate.Endpoint{Listed: true, LastOf: "a"}, 2 * time.Second, 0, ready, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v1"})
			pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), fixture.OutSince(ago(c.out)),
				c.change)
			if got, again := c.endpoint.Drained(pod, c.drain, 0, fixture.Start); got != c.want || again != c.again {
				t.Errorf("drained is %t, again in %s; want %t, %s", got, again, c.want, c.again)
			}
		})
	}
}

func changed(e discoveryv1.Endpoint, change func(*discoveryv1.Endpoint)) discoveryv1.Endpoint {
	change(&e)
	return e
}

func publishing(spec *corev1.ServiceSpec) { spec.PublishNotReadyAddresses = true }

func localOutside(spec *corev1.ServiceSpec) {
	spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
}

func localInside(spec *corev1.ServiceSpec) {
	spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
}
