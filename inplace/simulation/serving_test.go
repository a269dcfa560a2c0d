package simulation

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/serving"
)

// slice returns an EndpointSlice of a Service as the native controller writes it.
func slice(service string, endpoints ...discoveryv1.Endpoint) discoveryv1.EndpointSlice {
	return discoveryv1.EndpointSlice{Endpoints: endpoints, ObjectMeta: metav1.ObjectMeta{Name: service + "-1", Namespace: "shop",
		Labels: map[string]string{discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: serving.SliceController}}}
}

// foreign returns an EndpointSlice that another client manages.
func foreign(service string, endpoints ...discoveryv1.Endpoint) discoveryv1.EndpointSlice {
	foreign := slice(service, endpoints...)
	foreign.Labels[discoveryv1.LabelManagedBy] = "mesh.example"
	return foreign
}

// endpoint returns a pod on node n1, whose UID is its name.
func endpoint(pod string, ready bool) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		NodeName: new("n1"), TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: pod, UID: types.UID(pod)}}
}

func changed(e discoveryv1.Endpoint, change func(*discoveryv1.Endpoint)) discoveryv1.Endpoint {
	change(&e)
	return e
}

func service(name string, changes ...func(*corev1.ServiceSpec)) corev1.Service {
	service := corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}}
	for _, change := range changes {
		change(&service.Spec)
	}
	return service
}

func publishing(spec *corev1.ServiceSpec) { spec.PublishNotReadyAddresses = true }

func selecting(key, value string) func(*corev1.ServiceSpec) {
	return func(spec *corev1.ServiceSpec) { spec.Selector = map[string]string{key: value} }
}

func localOutside(spec *corev1.ServiceSpec) {
	spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
}

func localInside(spec *corev1.ServiceSpec) {
	spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
}

// TestEndpointsOf asks about pod p on node n1, whose gate is closed.
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
		want     serving.Endpoint
	}{
		"no slice":        {nil, nil, serving.Endpoint{}},
		"slice of others": {all{slice("a", endpoint("q", true))}, nil, serving.Endpoint{}},
		"offered":         {all{slice("a", endpoint("p", true), endpoint("q", true))}, nil, serving.Endpoint{Listed: true}},
		"out":             {all{slice("a", endpoint("p", false), endpoint("q", true))}, nil, serving.Endpoint{}},
		"nil counts as ready": {all{slice("a", changed(endpoint("p", true), nilReady), endpoint("q", true))}, nil,
			serving.Endpoint{Listed: true}},
		"nil of another, too": {all{slice("a", endpoint("p", false), changed(endpoint("q", true), nilReady))}, nil, serving.Endpoint{}},
		"by name, without UID": {all{slice("a", changed(endpoint("p", true), byName), endpoint("q", true))}, nil,
			serving.Endpoint{Listed: true}},
		"a namesake": {all{slice("a",
			changed(endpoint("p", true), func(e *discoveryv1.Endpoint) { e.TargetRef.UID = "earlier" }))}, nil, serving.Endpoint{}},
		"a foreign slice": {all{foreign("a", endpoint("p", true)), slice("a", endpoint("p", false), endpoint("q", true))}, nil,
			serving.Endpoint{}},
		"only a foreign slice": {all{foreign("a", endpoint("p", true))}, nil, serving.Endpoint{}},
		"published anyway":     {all{slice("a", endpoint("p", true))}, []corev1.Service{service("a", publishing)}, serving.Endpoint{}},
		"a Service not read": {all{slice("a", endpoint("p", true), endpoint("q", true))}, []corev1.Service{service("b", publishing)},
			serving.Endpoint{Listed: true}},
		"one of two Services": {all{slice("a", endpoint("p", false), endpoint("q", true)),
			slice("b", endpoint("p", true), endpoint("q", true))}, nil, serving.Endpoint{Listed: true}},
		"out of two Services": {all{slice("a", endpoint("p", false), endpoint("q", true)),
			slice("b", endpoint("p", false), endpoint("q", true))}, nil, serving.Endpoint{}},
		"one of two slices": {all{slice("a", endpoint("p", false), endpoint("q", true)),
			slice("a", endpoint("p", true), endpoint("q", true))}, nil, serving.Endpoint{Listed: true}},
		"last and offered": {all{slice("a", endpoint("p", true), endpoint("q", false))}, nil,
			serving.Endpoint{Listed: true, LastOf: "a"}},
		"last and out": {all{slice("a", endpoint("p", false), endpoint("q", false))}, nil, serving.Endpoint{LastOf: "a"}},
		"last but for one gone": {all{slice("a", endpoint("p", false), changed(endpoint("q", false), terminating))}, nil,
			serving.Endpoint{LastOf: "a"}},
		"last in two slices": {all{slice("a", endpoint("p", true)), slice("a", endpoint("p", true))}, nil,
			serving.Endpoint{Listed: true, LastOf: "a"}},
		"others in another slice": {all{slice("a", endpoint("p", false)), slice("a", endpoint("q", true))}, nil, serving.Endpoint{}},
		"last of one of two": {all{slice("b", endpoint("p", false)), slice("a", endpoint("p", false), endpoint("q", true))}, nil,
			serving.Endpoint{LastOf: "b"}},
		"last beside a foreign slice": {all{slice("a", endpoint("p", false)), foreign("a", endpoint("q", true))}, nil,
			serving.Endpoint{LastOf: "a"}},
		"last of one that publishes": {all{slice("a", endpoint("p", true)), slice("b", endpoint("p", false), endpoint("q", true))},
			[]corev1.Service{service("a", publishing), service("b")}, serving.Endpoint{}},
		"last on its node from outside": {all{slice("a", endpoint("p", false), changed(endpoint("q", true), elsewhere))},
			[]corev1.Service{service("a", localOutside)}, serving.Endpoint{LastOf: "a"}},
		"last on its node inside": {all{slice("a", endpoint("p", false), changed(endpoint("q", true), elsewhere))},
			[]corev1.Service{service("a", localInside)}, serving.Endpoint{LastOf: "a"}},
		"not last on its node": {all{slice("a", endpoint("p", false), endpoint("q", true))}, []corev1.Service{service("a", localInside)},
			serving.Endpoint{}},
		"last on its node, anywhere": {all{slice("a", endpoint("p", false), changed(endpoint("q", true), elsewhere))},
			[]corev1.Service{service("a")}, serving.Endpoint{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v1"})
			pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), fixture.Drained)
			pod.Spec.NodeName = "n1"
			got := serving.EndpointsOf(r.Seen.Pods, c.shown, c.services)[pod.UID]
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
		return foreign("a", discoveryv1.Endpoint{Addresses: addresses})
	}
	named := byHand("web.example")
	named.AddressType = discoveryv1.AddressTypeFQDN
	for name, c := range map[string]struct {
		shown    all
		services []corev1.Service
		want     bool
	}{
		"nothing there":          {nil, nil, false},
		"selected":               {nil, []corev1.Service{service("a", selecting("app", "web"))}, true},
		"selected by the second": {nil, []corev1.Service{service("a"), service("b", selecting("app", "web"))}, true},
		"selected and published": {nil, []corev1.Service{service("a", selecting("app", "web"), publishing)}, true},
		"others are selected":    {nil, []corev1.Service{service("a", selecting("app", "shop"))}, false},
		"no selector":            {nil, []corev1.Service{service("a")}, false},
		"listed, ready":          {all{slice("a", endpoint("p", true))}, nil, true},
		"listed, not ready":      {all{slice("a", endpoint("q", true), endpoint("p", false))}, nil, true},
		"listed by name, without UID": {all{slice("a", changed(endpoint("p", true), func(e *discoveryv1.Endpoint) { e.TargetRef.UID = "" }))},
			nil, true},
		"a namesake": {all{slice("a",
			changed(endpoint("p", true), func(e *discoveryv1.Endpoint) { e.TargetRef.UID = "earlier" }))}, nil, false},
		"another pod of its address": {all{slice("a", endpoint("q", true))}, nil, false},
		"by a mesh":                  {all{foreign("a", endpoint("p", true))}, nil, true},
		"by hand":                    {all{byHand("10.0.0.7", "10.0.0.1")}, nil, true},
		"by hand, written otherwise": {all{byHand("::ffff:10.0.0.1")}, nil, true},
		"others by hand":             {all{byHand("10.0.0.7")}, nil, false},
		"a name by hand":             {all{named}, nil, true},
		"of another kind": {all{foreign("a", changed(endpoint("q", true), func(e *discoveryv1.Endpoint) {
			e.TargetRef.Kind = "Machine"
		}))}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v1"})
			pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), fixture.Drained)
			pod.Labels, pod.Status.PodIPs = map[string]string{"app": "web"}, []corev1.PodIP{{IP: "10.0.0.1"}}
			if got := serving.SentTo(pod, c.shown, c.services); got != c.want {
				t.Errorf("clients are sent to it: %t, not %t", got, c.want)
			}
			if got := serving.EndpointsOf(r.Seen.Pods, c.shown, c.services)[pod.UID].NoClientSent; got == c.want {
				t.Errorf("the endpoint says that no client is sent to it: %t", got)
			}
		})
	}
}

func TestEndpointsOfPodsWithAnOpenGate(t *testing.T) {
	r := fixture.New(3, fixture.App{Image: "v1"})
	rs := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 3)
	fixture.PodOf(r, "open", rs)
	fixture.PodOf(r, "without", rs, fixture.Ungated)
	fixture.PodOf(r, "closed", rs, fixture.Drained, fixture.ConditionIs(corev1.PodReady, corev1.ConditionTrue))
	got := serving.EndpointsOf(r.Seen.Pods, []discoveryv1.EndpointSlice{slice("a", endpoint("open", true))}, nil)
	if want := (serving.Endpoints{"closed": {Listed: true, NoClientSent: true}}); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("endpoints are %v, not %v: a pod that is Ready may be offered at any moment", got, want)
	}
}

func TestDrained(t *testing.T) {
	ready := fixture.ConditionIs(corev1.PodReady, corev1.ConditionTrue)
	ago := func(d time.Duration) time.Time { return fixture.Start.Add(-d) }
	for name, c := range map[string]struct {
		endpoint serving.Endpoint
		drain    time.Duration
		closed   time.Duration // how long the gate has been closed
		change   func(*corev1.Pod)
		want     bool
		again    time.Duration
	}{
		"Ready":                    {serving.Endpoint{OutSince: ago(5 * time.Second)}, 2 * time.Second, 5 * time.Second, ready, false, 0},
		"Ready without drain":      {serving.Endpoint{}, 0, 5 * time.Second, ready, false, 0},
		"Ready and overdue":        {serving.Endpoint{}, 2 * time.Second, time.Minute, ready, false, 0},
		"open":                     {serving.Endpoint{}, 0, 0, fixture.ConditionIs(inplace.ConditionServing, corev1.ConditionTrue), false, 0},
		"without drain":            {serving.Endpoint{Listed: true}, 0, 0, nil, true, 0},
		"offered":                  {serving.Endpoint{Listed: true}, 2 * time.Second, time.Second, nil, false, 31 * time.Second},
		"offered, almost too long": {serving.Endpoint{Listed: true}, 2 * time.Second, 31 * time.Second, nil, false, time.Second},
		"offered for too long":     {serving.Endpoint{Listed: true}, 2 * time.Second, 32 * time.Second, nil, true, 0},
		"offered after having been out": {serving.Endpoint{Listed: true, OutSince: ago(time.Minute)}, 2 * time.Second, 0, nil, false,
			32 * time.Second},
		"not seen to be out": {serving.Endpoint{}, 2 * time.Second, time.Second, nil, false, serving.UnseenAgain},
		"out just now":       {serving.Endpoint{OutSince: fixture.Start}, 2 * time.Second, time.Second, nil, false, 2 * time.Second},
		"out not long enough": {serving.Endpoint{OutSince: ago(1500 * time.Millisecond)}, 2 * time.Second, 3 * time.Second, nil, false,
			500 * time.Millisecond},
		"out long enough": {serving.Endpoint{OutSince: ago(2 * time.Second)}, 2 * time.Second, 3 * time.Second, nil, true, 0},
		"out late": {serving.Endpoint{OutSince: ago(time.Second)}, 2 * time.Second, 31500 * time.Millisecond, nil, false,
			500 * time.Millisecond},
		"last":                         {serving.Endpoint{Listed: true, LastOf: "a"}, 2 * time.Second, 0, nil, true, 0},
		"no client is sent":            {serving.Endpoint{NoClientSent: true}, 2 * time.Second, 0, nil, true, 0},
		"no client is sent, and Ready": {serving.Endpoint{NoClientSent: true}, 2 * time.Second, 0, ready, false, 0},
		"last and Ready":               {serving.Endpoint{Listed: true, LastOf: "a"}, 2 * time.Second, 0, ready, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v1"})
			pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), fixture.Drained, nonNil(c.change))
			conditions.Condition(pod, inplace.ConditionServing).LastTransitionTime = metav1.NewTime(ago(c.closed))
			if got, again := c.endpoint.Drained(pod, c.drain, 0, fixture.Start); got != c.want || again != c.again {
				t.Errorf("drained is %t, again in %s; want %t, %s", got, again, c.want, c.again)
			}
		})
	}
}

// draining returns a Deployment with a drain whose pods have served for long.
func draining(t *testing.T, replicas int32) *lockstep {
	s := newLockstep(t, replicas, nil, false)
	s.settings.Drain = 2 * time.Second
	return s
}

// waited returns how long after the previous step a step came.
func (s *lockstep) waited(step string) time.Duration {
	s.t.Helper()
	i := slices.Index(s.steps, step)
	if i < 1 {
		s.t.Fatalf("%q is not among %q", step, s.steps)
	}
	return s.times[i].Sub(s.times[i-1])
}

// roughly compares as exactly as a lockstep can, whose rounds take 20 ms.
func roughly(got, want time.Duration) bool { return got >= want && got < want+200*time.Millisecond }

func TestStepsOfADrain(t *testing.T) {
	s := draining(t, 3)
	before := sorted(s.pods.objects)
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.rest()
	// Replicas are lowered only when the pod may be patched. Until then its old ReplicaSet counts it.
	if !roughly(s.waited("A 3 → 2"), 2*time.Second) || !roughly(s.waited("A 2 → 1"), 2*time.Second) {
		t.Errorf("the drains took %s and %s: %q", s.waited("A 3 → 2"), s.waited("A 2 → 1"), s.steps)
	}
	s.expect("A marks", "B marks", "close 1", "A 3 → 2", "move 1", "B 0 → 1", "open 1",
		"close 2", "A 2 → 1", "move 2", "B 1 → 2", "open 2", "close 3", "A 1 → 0", "move 3", "B 2 → 3", "A marks", "B marks", "open 3")
	s.intact(before)
}

func TestStepsOfTheLastEndpoint(t *testing.T) {
	s := draining(t, 1)
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.rest()
	if waited := s.waited("A 1 → 0"); waited > 200*time.Millisecond {
		t.Errorf("the only pod was out of service for %s before it restarted", waited)
	}
	s.expect("A marks", "B marks", "close 1", "A 1 → 0", "move 1", "B 0 → 1", "A marks", "B marks", "open 1")
}

func TestStepsWhereNoClientIsSent(t *testing.T) {
	s := draining(t, 2)
	s.unserved = true
	delete(s.slices.objects, "web-1")
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.rest()
	if first, second := s.waited("A 2 → 1"), s.waited("A 1 → 0"); first > 200*time.Millisecond || second > 200*time.Millisecond {
		t.Errorf("pods without clients were out of service for %s and %s before they restarted", first, second)
	}
	s.expect("A marks", "B marks", "close 1", "A 2 → 1", "move 1", "B 0 → 1", "open 1",
		"close 2", "A 1 → 0", "move 2", "B 1 → 2", "A marks", "B marks", "open 2")
}

// TestPreStopCounts asks when a pod of two containers, whose gate has just been closed, may be patched.
func TestPreStopCounts(t *testing.T) {
	sleep := func(seconds int64) *corev1.Lifecycle {
		return &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: seconds}}}
	}
	exec := &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sleep", "9"}}}}
	for name, c := range map[string]struct {
		app, proxy *corev1.Lifecycle
		both       bool
		grace      int64
		left       time.Duration
	}{
		"no hook":                   {grace: 30, left: 5 * time.Second},
		"it sleeps a part":          {app: sleep(2), grace: 30, left: 3 * time.Second},
		"it sleeps longer":          {app: sleep(8), grace: 30},
		"it sleeps just as long":    {app: sleep(5), grace: 30},
		"killed before":             {app: sleep(8), grace: 1, left: 4 * time.Second},
		"a command":                 {app: exec, grace: 30, left: 5 * time.Second},
		"one of two does":           {app: sleep(8), both: true, grace: 30, left: 5 * time.Second},
		"both do":                   {app: sleep(8), proxy: sleep(3), both: true, grace: 30, left: 2 * time.Second},
		"only the one that runs on": {proxy: sleep(8), grace: 30, left: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			r, drain := fixture.New(1, fixture.App{Image: "v1"}), 5*time.Second
			pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), fixture.Drained)
			conditions.Condition(pod, inplace.ConditionServing).LastTransitionTime = metav1.NewTime(fixture.Start)
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "proxy", Image: "p1"})
			pod.Spec.Containers[0].Lifecycle, pod.Spec.Containers[1].Lifecycle = c.app, c.proxy
			pod.Spec.TerminationGracePeriodSeconds = new(c.grace)
			s := podstate.State{Pod: pod, Containers: fixture.Reimaged("app", "v2").Containers}
			if c.both {
				s.Containers = append(s.Containers, fixture.Reimaged("proxy", "p2").Containers...)
			}
			turns, endpoints := podstate.Turns{&s: true}, serving.Endpoints{pod.UID: {OutSince: fixture.Start}}
			if found := turns.DrainState(&s, endpoints, drain, fixture.Start); found.Over != (c.left == 0) || found.Left != c.left {
				t.Errorf("drained %t, looks again in %s; want %s", found.Over, found.Left, c.left)
			}
			if !c.both {
				side := pod.Spec.Containers[0]
				side.Name, side.RestartPolicy = "mesh", new(corev1.ContainerRestartPolicyAlways)
				pod.Spec.InitContainers, s.Containers = []corev1.Container{side}, fixture.Reimaged("mesh", "m2").Containers
				if found := turns.DrainState(&s, endpoints, drain, fixture.Start); found.Over != (c.left == 0) || found.Left != c.left {
					t.Errorf("a sidecar: drained %t, looks again in %s; want %s", found.Over, found.Left, c.left)
				}
			}
			s.Removing = true
			if turns.DrainState(&s, endpoints, drain, fixture.Start).Over {
				t.Error("a surge pod is deleted before its drain is over")
			}
		})
	}
}

func TestStepsOfASliceThatDoesNotFollow(t *testing.T) {
	s := draining(t, 2)
	s.endpointsController.away = true
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.rest()
	s.expect("A marks", "B marks", "close 1")
	s.now = s.now.Add(serving.DrainPatience + s.settings.Drain)
	s.until(func() bool { return slices.Contains(s.steps, "move 1") })
	s.expect("A 2 → 1", "move 1")
}

func TestStepsOfPauseWhileDraining(t *testing.T) {
	s := draining(t, 3)
	s.edit("sets the image", fixture.App{Image: "v2"})
	s.until(func() bool { return slices.Contains(s.steps, "close 1") })
	s.user("pauses", func(d *apps.Deployment) { d.Spec.Paused = true })
	s.until(func() bool { return slices.Contains(s.steps, "open 1") })
	s.expect("A marks", "B marks", "close 1", "open 1")
	s.user("resumes", func(d *apps.Deployment) { d.Spec.Paused = false })
	s.until(func() bool { return slices.Contains(s.steps, "A 3 → 2") })
	if !roughly(s.waited("A 3 → 2"), 2*time.Second) {
		t.Errorf("the second drain took %s", s.waited("A 3 → 2"))
	}
}

func TestStepsOfALabelDoNotDrain(t *testing.T) {
	s := draining(t, 2)
	s.edit("sets a label", fixture.App{Image: "v1", Chart: "c2"})
	s.rest()
	if took := s.times[len(s.times)-1].Sub(s.times[0]); took > time.Second {
		t.Errorf("an edit of labels took %s", took)
	}
	s.expect("A marks", "B marks", "A 2 → 1", "move 1", "B 0 → 1", "A 1 → 0", "move 2", "B 1 → 2", "A marks", "B marks")
}

func TestPlanLooksAgainWhenADrainEnds(t *testing.T) {
	r := fixture.New(2, fixture.App{Image: "v2"})
	oldRS, newRS := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 2), fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 0)
	oldRS.Labels[inplace.LabelUpdating], newRS.Labels[inplace.LabelUpdating] = fixture.Begun, fixture.Begun
	r.Seen.Settings.Drain = 2 * time.Second
	pod := fixture.PodOf(r, "p", oldRS, fixture.Drained)
	fixture.PodOf(r, "q", oldRS)
	conditions.Condition(pod, inplace.ConditionServing).LastTransitionTime = metav1.NewTime(fixture.Start.Add(-time.Second))
	for name, c := range map[string]struct {
		endpoint serving.Endpoint
		after    time.Duration
	}{
		"when the drain ends":  {serving.Endpoint{OutSince: fixture.Start.Add(-500 * time.Millisecond)}, 1500 * time.Millisecond},
		"when the bound ends":  {serving.Endpoint{Listed: true}, 31 * time.Second},
		"to see whether it is": {serving.Endpoint{}, serving.UnseenAgain},
	} {
		r.Seen.Endpoints = serving.Endpoints{pod.UID: c.endpoint}
		if plan := r.Plan(); plan.After != c.after || len(resized(plan)) > 0 {
			t.Errorf("%s: looks again after %s, and %v", name, plan.After, plan.Steps)
		}
	}
}

func TestDaemonStepsOfADrain(t *testing.T) {
	f := newFleet(t, 2)
	f.Seen.Settings.Drain = 2 * time.Second
	f.edit(fixture.App{Image: "v2"})
	f.once()
	f.once()
	f.expect("mark 2 true false", "close p1")
	closedAt := f.Seen.Now
	out := func(e serving.Endpoint) serving.Endpoints { return serving.Endpoints{f.Seen.Pods[0].UID: e} }
	for _, step := range []struct {
		endpoint serving.Endpoint
		after    time.Duration
		want     []string
	}{
		{serving.Endpoint{Listed: true}, 31 * time.Second, nil},
		{serving.Endpoint{}, serving.UnseenAgain, nil},
		{serving.Endpoint{OutSince: closedAt.Add(3 * time.Second)}, 2 * time.Second, nil},
		{serving.Endpoint{OutSince: closedAt.Add(3 * time.Second)}, time.Second, nil},
		{serving.Endpoint{OutSince: closedAt.Add(3 * time.Second)}, 54 * time.Second, []string{"p1 is 2 app=v2"}}, // until the next renewal
	} {
		f.Seen.Endpoints = out(step.endpoint)
		if plan := f.once(); plan.After != step.after {
			t.Errorf("%+v: looks again after %s, want %s", step.endpoint, plan.After, step.after)
		}
		f.expect(step.want...)
	}
	f.once()
	f.once()
	f.expect("open p1", "close p2")
	f.Seen.Endpoints = serving.Endpoints{f.Seen.Pods[1].UID: {Listed: true, LastOf: "agent"}}
	f.once()
	f.expect("p2 is 2 app=v2")
}

func TestDaemonLabelsAndPodsWithoutGateDoNotDrain(t *testing.T) {
	f := newFleet(t, 1)
	f.Seen.Settings.Drain = 2 * time.Second
	f.edit(fixture.App{Image: "v1", Chart: "c2"})
	f.rest()
	f.expect("mark 2 true false", "p1 is 2 app=v1", "mark 2 false false")
	f = newFleet(t, 1, func(f *fleet) { fixture.Ungated(f.Seen.Pods[0]) })
	f.Seen.Settings.Drain = 2 * time.Second
	f.edit(fixture.App{Image: "v2"})
	f.rest()
	f.expect("mark 2 true false", "p1 is updating-in-place app=v2", "p1 is 2 app=v2", "mark 2 false false")
}
