package controller

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/controller/kinds"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/observe"
)

const drain = 2 * time.Second

// serving adds the slice of a Service that offers pods, those named out excepted.
func (c *cluster) serving(out ...string) {
	c.t.Helper()
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: "web-1", Labels: map[string]string{
		discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io"}}}
	for _, pod := range c.snapshot().rollout.Pods {
		ready := !slices.Contains(out, pod.Name)
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Conditions: discoveryv1.EndpointConditions{Ready: &ready},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: pod.Name, UID: pod.UID}})
	}
	if err := client.IgnoreNotFound(c.Delete(c.t.Context(), slice.DeepCopy())); err != nil {
		c.t.Fatal(err)
	}
	if err := c.Create(c.t.Context(), slice); err != nil {
		c.t.Fatal(err)
	}
}

// endpointsNow reads the slices.
func (c *cluster) endpointsNow() inplace.Endpoints {
	c.t.Helper()
	endpoints, err := observe.Reader{Reader: c}.Endpoints(c.t.Context(), web.Namespace, c.snapshot().rollout.Pods)
	if err != nil {
		c.t.Fatal(err)
	}
	return endpoints
}

// draining is a cluster in which the gate of web-old-0 is closed and the kubelet has seen it; all pods are offered.
func draining(t *testing.T) *cluster {
	c := newCluster(t)
	c.serving()
	c.shut("web-old-0", time.Now())
	return c
}

func (c *cluster) shut(name string, at time.Time) {
	c.t.Helper()
	pod := &corev1.Pod{}
	if err := c.Get(c.t.Context(), types.NamespacedName{Namespace: web.Namespace, Name: name}, pod); err != nil {
		c.t.Fatal(err)
	}
	for i := range pod.Status.Conditions {
		if condition := &pod.Status.Conditions[i]; condition.Type != corev1.ContainersReady {
			condition.Status, condition.Reason, condition.LastTransitionTime = corev1.ConditionFalse, "ReadinessGatesNotReady", metav1.NewTime(at)
		}
	}
	if err := c.Status().Update(c.t.Context(), pod); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) scene() kinds.Scene {
	rollout := c.snapshot().rollout
	rollout.Settings.Drain = drain
	return kinds.Deployment{Rollout: rollout}.Scene()
}

// stopped is a cache of endpoints that has stopped.
type stopped struct{ endpoints inplace.Endpoints }

func (s stopped) Endpoints(context.Context, string, []*corev1.Pod) (inplace.Endpoints, error) {
	return s.endpoints, nil
}

// unreadable fails.
type unreadable struct{}

func (unreadable) Endpoints(context.Context, string, []*corev1.Pod) (inplace.Endpoints, error) {
	return nil, errText("away")
}

func (c *cluster) endpoint(d *drains) inplace.Endpoint {
	c.t.Helper()
	endpoints, err := d.endpoints(c.t.Context(), web, c.scene())
	if err != nil {
		c.t.Fatal(err)
	}
	return endpoints["web-old-0"]
}

func TestDrainBeginsWhenThePodIsSeenToBeOut(t *testing.T) {
	c := draining(t)
	d := &drains{cached: observe.Reader{Reader: c}, live: observe.Reader{Reader: c}}
	if e := c.endpoint(d); !e.Listed || !e.OutSince.IsZero() {
		t.Fatalf("offered, and %+v", e)
	}
	c.serving("web-old-0")
	first := c.endpoint(d)
	if first.Listed || time.Since(first.OutSince) > time.Minute {
		t.Fatalf("out, and %+v", first)
	}
	d.live = unreadable{} // it is not asked again
	if second := c.endpoint(d); second != first {
		t.Errorf("the wait began anew: %+v, %+v", first, second)
	}
	c.serving()
	if e := c.endpoint(d); !e.Listed || len(d.out[web]) > 0 {
		t.Errorf("offered again, and %+v", e)
	}
}

func TestDrainIsForgotten(t *testing.T) {
	c := draining(t)
	c.serving("web-old-0")
	d := &drains{cached: observe.Reader{Reader: c}, live: observe.Reader{Reader: c}}
	for name, change := range map[string]func(*kinds.Scene){
		"the gate is open":   func(s *kinds.Scene) { s.Pods = s.Pods[1:] },
		"there is no drain":  func(s *kinds.Scene) { s.Settings.Drain = 0 },
		"there are no pods":  func(s *kinds.Scene) { s.Pods = nil },
		"the pod is another": func(s *kinds.Scene) { s.Pods[0].UID = "another" },
	} {
		c.endpoint(d)
		seen := c.scene()
		change(&seen)
		if _, err := d.endpoints(t.Context(), web, seen); err != nil {
			t.Fatal(err)
		}
		if _, known := d.out[web]["web-old-0"]; known {
			t.Errorf("%s, and the pod is remembered: %v", name, d.out)
		}
	}
}

func TestDrainDoesNotBeginOnTheCacheAlone(t *testing.T) {
	c := draining(t)
	cached := stopped{inplace.Endpoints{"web-old-0": {}}} // it has not seen the pod become an endpoint
	if e := c.endpoint(&drains{cached: cached, live: observe.Reader{Reader: c}}); !e.Listed {
		t.Errorf("the API server has it offered, and it is %+v", e)
	}
	if e := c.endpoint(&drains{cached: cached, live: unreadable{}}); e.Listed || !e.OutSince.IsZero() {
		t.Errorf("the API server is away, and it is %+v", e)
	}
}

// restart is a step that restarts a container of the pod.
func restart(pod *corev1.Pod) inplace.PatchPod {
	step := label(pod)
	step.Drained = true
	return step
}

func TestConfirm(t *testing.T) {
	ago := func(d time.Duration) map[types.UID]time.Time {
		return map[types.UID]time.Time{"web-old-0": time.Now().Add(-d)}
	}
	for name, test := range map[string]struct {
		out    map[types.UID]time.Time
		closed time.Duration // since when the gate is
		slice  []string      // who is out of it
		away   bool
		kept   bool
	}{
		"still out":                       {out: ago(3 * time.Second), slice: []string{"web-old-0"}, kept: true},
		"out, but not for long":           {out: ago(time.Second), slice: []string{"web-old-0"}},
		"offered after all":               {out: ago(3 * time.Second)},
		"offered, for longer than we may": {closed: time.Minute, kept: true},
		"the last one":                    {slice: []string{"web-old-0", "web-old-1", "web-old-2"}, kept: true},
		"no longer the last one":          {slice: []string{"web-old-0", "web-old-1"}},
		"nobody knows":                    {out: ago(3 * time.Second), away: true},
		"nobody knows, for too long":      {out: ago(3 * time.Second), closed: time.Minute, away: true, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.shut("web-old-0", time.Now().Add(-test.closed))
			c.serving(test.slice...)
			d := &drains{live: observe.Reader{Reader: c}, out: map[types.NamespacedName]map[types.UID]time.Time{web: test.out}}
			if test.away {
				d.live = unreadable{}
			}
			seen := c.scene()
			steps := []inplace.Step{label(seen.Pods[1]), restart(seen.Pods[0]), label(seen.Pods[2])}
			kept, confirmed := d.confirm(t.Context(), web, seen, steps)
			if confirmed != test.kept || len(kept) != map[bool]int{true: 3, false: 2}[test.kept] {
				t.Errorf("confirmed is %t with %d of 3 steps", confirmed, len(kept))
			}
			if e := c.endpointsNow()["web-old-0"]; e.Listed && len(d.out[web]) > 0 && !test.away {
				t.Error("the pod is offered, and remembered as out")
			}
		})
	}
}

func TestConfirmAsksNobodyWithoutNeed(t *testing.T) {
	c := draining(t)
	d := &drains{live: unreadable{}}
	seen := c.scene()
	if kept, confirmed := d.confirm(t.Context(), web, seen, []inplace.Step{label(seen.Pods[0])}); !confirmed || len(kept) != 1 {
		t.Error("a change of labels waits for endpoints")
	}
	seen.Settings.Drain = 0
	if kept, confirmed := d.confirm(t.Context(), web, seen, []inplace.Step{restart(seen.Pods[0])}); !confirmed || len(kept) != 1 {
		t.Error("there is a wait although there is no drain")
	}
}

// TestReconcileWaitsForEndpoints lets the cache say that the pod is out, while the API server has it offered until late.
func TestReconcileWaitsForEndpoints(t *testing.T) {
	c := newCluster(t)
	c.drainFor("50ms")
	c.serving()
	r := c.reconciler(nil)
	c.start(r)
	c.reconcile(r) // marks
	c.reconcile(r)
	c.kubeletSeesGates()
	out := c.closedPods()
	if len(out) != 1 {
		t.Fatalf("%v are closed, want one", out)
	}
	lowered := func() bool { return *c.replicaSet("web-old").Spec.Replicas < 3 }
	r.drains.cached = stopped{inplace.Endpoints{types.UID(out[0]): {}}}
	if c.reconcile(r); lowered() {
		t.Error("the API server has the pod offered, and its turn has come")
	}
	c.serving(out...)
	if result := c.reconcile(r); lowered() || result.RequeueAfter > 100*time.Millisecond {
		t.Errorf("out just now, lowered %t, and looking again in %s", lowered(), result.RequeueAfter)
	}
	time.Sleep(60 * time.Millisecond)
	if c.reconcile(r); !lowered() {
		t.Error("its turn has not come although the drain is over")
	}
}

func (c *cluster) drainFor(value string) {
	c.t.Helper()
	namespace := c.namespace()
	namespace.Labels[inplace.LabelDrain] = value
	if err := c.Update(c.t.Context(), namespace); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) closedPods() []string {
	c.t.Helper()
	var names []string
	for _, pod := range c.snapshot().rollout.Pods {
		if inplace.Closed(pod) {
			names = append(names, pod.Name)
		}
	}
	return names
}

func TestRouterOfEndpoints(t *testing.T) {
	c := draining(t)
	route := router{observe.Reader{Reader: c}, kinds.Deployments}
	slice := &discoveryv1.EndpointSlice{}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: web.Namespace, Name: "web-1"}, slice); err != nil {
		t.Fatal(err)
	}
	woken := func(change func(*discoveryv1.EndpointSlice)) bool {
		changed := slice.DeepCopy()
		change(changed)
		requests := route.endpoints(t.Context(), changed)
		return len(requests) == 1 && requests[0] == request
	}
	for what, test := range map[string]struct {
		change func(*discoveryv1.EndpointSlice)
		want   bool
	}{
		"a pod that waits":         {func(*discoveryv1.EndpointSlice) {}, true},
		"only others":              {func(s *discoveryv1.EndpointSlice) { s.Endpoints = s.Endpoints[1:] }, false},
		"a slice of somebody else": {func(s *discoveryv1.EndpointSlice) { s.Labels[discoveryv1.LabelManagedBy] = "mesh.example" }, false},
		"no pod":                   {func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].TargetRef = nil }, false},
		"a pod that is gone":       {func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].TargetRef.Name = "gone" }, false},
	} {
		if got := woken(test.change); got != test.want {
			t.Errorf("%s: woken is %t", what, got)
		}
	}
	c.unlabel()
	if woken(func(*discoveryv1.EndpointSlice) {}) {
		t.Error("woken by a slice of a namespace without our label")
	}
}
