package controller

import (
	"testing"
	"time"

	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/internal/observe"
)

// TestReconcileWaitsForEndpoints has a cache that shows the pod as not offered, while the API server still has it as an
// offered endpoint for some time.
func TestReconcileWaitsForEndpoints(t *testing.T) {
	c := newCluster(t)
	c.drainFor("50ms")
	c.Serving()
	r := c.reconciler(nil)
	c.start(r)
	c.reconcile(r) // writes the marks
	c.reconcile(r)
	out := c.outPods()
	if len(out) != 1 {
		t.Fatalf("%v are out of service, want one", out)
	}
	lowered := func() bool { return *c.ReplicaSet("web-old").Spec.Replicas < 3 }
	r.drains.Cached = fixture.Stopped{At: podstate.Endpoints{types.UID(out[0]): {}}}
	if c.reconcile(r); lowered() {
		t.Error("the pod's turn has come while the API server has it as an offered endpoint")
	}
	c.Serving(out...)
	if result := c.reconcile(r); lowered() || result.RequeueAfter > 100*time.Millisecond {
		t.Errorf("the pod went out of service just now: lowered %t, requeued after %s", lowered(), result.RequeueAfter)
	}
	time.Sleep(60 * time.Millisecond)
	if c.reconcile(r); !lowered() {
		t.Error("the pod's turn has not come although the drain is over")
	}
}

func (c *cluster) drainFor(value string) {
	c.T.Helper()
	namespace := c.namespace()
	metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, inplace.AnnotationDrain, value)
	if err := c.Update(c.T.Context(), namespace); err != nil {
		c.T.Fatal(err)
	}
}

func (c *cluster) outPods() []string {
	c.T.Helper()
	var names []string
	for _, pod := range c.Snapshot().Read.Seen.Pods {
		if readiness.Out(pod) {
			names = append(names, pod.Name)
		}
	}
	return names
}

func TestRouterOfEndpoints(t *testing.T) {
	c := draining(t)
	route := router{observe.Reader{Reader: c}, observe.Deployments}
	slice := &discoveryv1.EndpointSlice{}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: fixture.Web.Namespace, Name: "web-1"}, slice); err != nil {
		t.Fatal(err)
	}
	enqueued := func(change func(*discoveryv1.EndpointSlice)) bool {
		changed := slice.DeepCopy()
		change(changed)
		requests := route.endpoints(t.Context(), changed)
		return len(requests) == 1 && requests[0] == fixture.Request
	}
	for what, test := range map[string]struct {
		change func(*discoveryv1.EndpointSlice)
		want   bool
	}{
		"a pod that waits":   {func(*discoveryv1.EndpointSlice) {}, true},
		"only others":        {func(s *discoveryv1.EndpointSlice) { s.Endpoints = s.Endpoints[1:] }, false},
		"a slice of a mesh":  {func(s *discoveryv1.EndpointSlice) { s.Labels[discoveryv1.LabelManagedBy] = "mesh.example" }, false},
		"no pod":             {func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].TargetRef = nil }, false},
		"a pod that is gone": {func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].TargetRef.Name = "gone" }, false},
	} {
		if got := enqueued(test.change); got != test.want {
			t.Errorf("%s: enqueued is %t", what, got)
		}
	}
	c.unlabel()
	if enqueued(func(*discoveryv1.EndpointSlice) {}) {
		t.Error("a slice of a namespace without Stayput's label enqueues its workload")
	}
}
