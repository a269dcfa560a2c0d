package controller

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stayput/stayput/controller/internal/fixture"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/internal/observe"
)

func TestRouter(t *testing.T) {
	c := newCluster(t)
	route := router{observe.Reader{Reader: c}, observe.Deployments}
	rollout := c.Snapshot().Read
	old, pod := c.ReplicaSet("web-old"), rollout.Seen.Pods[0]
	marked := c.ReplicaSet("web-old")
	marked.Labels[inplace.LabelUpdating] = "1"
	out := pod.DeepCopy()
	out.Status.Conditions = []corev1.PodCondition{readiness.TakenOutUntil(pod, time.Now(), time.Now())}
	orphan := pod.DeepCopy()
	orphan.OwnerReferences[0].UID = "another"

	check := func(what string, got []reconcile.Request, want bool) {
		t.Helper()
		if len(got) > 1 || (len(got) == 1) != want || want && got[0] != fixture.Request {
			t.Errorf("%s: %v, want it to enqueue %s: %t", what, got, fixture.Web, want)
		}
	}
	for _, labelled := range []bool{true, false} {
		if !labelled {
			c.unlabel()
		}
		check("Deployment", route.workload(t.Context(), rollout.Deployment), labelled)
		check("ReplicaSet", route.revision(t.Context(), old), labelled)
		check("marked ReplicaSet", route.revision(t.Context(), marked), true)
		check("pod", route.pod(t.Context(), pod), labelled)
		check("pod out of service", route.pod(t.Context(), out), true)
		check("pod of another ReplicaSet", route.pod(t.Context(), orphan), false)
		check("namespace", route.namespace(t.Context(), c.namespace()), true)
	}
}

func (c *cluster) namespace() *corev1.Namespace {
	c.T.Helper()
	namespace := &corev1.Namespace{}
	if err := c.Get(c.T.Context(), client.ObjectKey{Name: fixture.Web.Namespace}, namespace); err != nil {
		c.T.Fatal(err)
	}
	return namespace
}

func (c *cluster) unlabel() {
	c.T.Helper()
	namespace := c.namespace()
	namespace.Labels = nil
	if err := c.Update(c.T.Context(), namespace); err != nil {
		c.T.Fatal(err)
	}
}

func TestRelabelled(t *testing.T) {
	namespace := func(metadata map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: metadata, Annotations: metadata}}
	}
	labels := func(update, drain string) map[string]string {
		return map[string]string{inplace.LabelUpdate: update, inplace.AnnotationDrain: drain}
	}
	inPlace, only := map[string]string{inplace.LabelUpdate: "in-place"}, map[string]string{inplace.LabelUpdate: "in-place-only"}
	for _, test := range []struct {
		before, after map[string]string
		passes        bool
	}{
		{nil, inPlace, true},
		{inPlace, nil, true},
		{inPlace, only, true},
		{inPlace, inPlace, false},
		{nil, nil, false},
		{labels("in-place", "10m"), labels("in-place", "1s"), true},
		{inPlace, labels("in-place", "1s"), true},
		{map[string]string{inplace.AnnotationSurge: "replace"}, map[string]string{inplace.AnnotationSurge: "never"}, true},
		{map[string]string{inplace.LabelKinds: "deployments"}, nil, true},
		{map[string]string{inplace.AnnotationLocked: "drain"}, nil, true},
		{nil, map[string]string{inplace.AnnotationMaintenanceWindow: "always"}, true},
		{nil, map[string]string{inplace.AnnotationSurge: "not valid"}, false},
		{map[string]string{"team": "a"}, map[string]string{"team": "b"}, false},
	} {
		update := event.UpdateEvent{ObjectOld: namespace(test.before), ObjectNew: namespace(test.after)}
		if passes := relabelled.Update(update); passes != test.passes {
			t.Errorf("%v to %v passes %t, want %t", test.before, test.after, passes, test.passes)
		}
		if passes := relabelled.Create(event.CreateEvent{Object: namespace(test.after)}); passes != (test.after[inplace.LabelUpdate] != "") {
			t.Errorf("created with %v passes %t", test.after, passes)
		}
	}
}

// TestWindowsOfNamespacesPass: an update may wait for another window than before.
func TestWindowsOfNamespacesPass(t *testing.T) {
	before := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{inplace.LabelUpdate: "in-place"}}}
	for annotation, want := range map[string]bool{inplace.AnnotationMaintenanceWindow: true, "note": false} {
		after := before.DeepCopy()
		after.Annotations = map[string]string{annotation: "Sat 02:00-04:00"}
		if passes := relabelled.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); passes != want {
			t.Errorf("%s passes %t, want %t", annotation, passes, want)
		}
	}
}

// TestNodesConcernTheDeploymentsOnThem checks that a node that becomes unreachable concerns the Deployments with pods on it, and
// no other.
func TestNodesConcernTheDeploymentsOnThem(t *testing.T) {
	c := newCluster(t)
	c.Add(&apps.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Web.Namespace, Name: "agent"}})
	c.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "unlabelled"}})
	c.Add(&apps.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "unlabelled", Name: "agent"}})
	for i, node := range []string{"one", "one", "two"} {
		pod := c.Pod(client.ObjectKey{Namespace: fixture.Web.Namespace, Name: fmt.Sprint("web-old-", i)})
		pod.Spec.NodeName = node
		if err := c.Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	agent := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: fixture.Web.Namespace, Name: "agent"}}
	for node, want := range map[string][]reconcile.Request{"one": {fixture.Request}, "two": {fixture.Request}, "three": nil} {
		object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
		if got := (router{observe.Reader{Reader: c}, observe.Deployments}).node(t.Context(), object); !slices.Equal(got, want) {
			t.Errorf("node %s concerns %v, want %v", node, got, want)
		}
		got := (router{observe.Reader{Reader: c}, observe.DaemonSets}).node(t.Context(), object)
		if !slices.Equal(got, []reconcile.Request{agent}) {
			t.Errorf("node %s concerns %v, want %v", node, got, agent)
		}
	}
}

// TestEventsOfNodesAreGathered checks that many events of nodes enqueue a workload only once.
func TestEventsOfNodesAreGathered(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(retries(), workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Clock: clock})
	defer queue.ShutDown()
	concerned := gathered(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{fixture.Request} })
	for range 100 {
		concerned.Update(t.Context(), event.UpdateEvent{ObjectOld: &corev1.Node{}, ObjectNew: &corev1.Node{}}, queue)
	}
	if queue.Len() > 0 {
		t.Error("a workload is enqueued at once")
	}
	for queue.Len() == 0 { // the queue waits in a goroutine of its own
		clock.Step(inplace.LookAgain)
		runtime.Gosched()
	}
	request, _ := queue.Get()
	queue.Done(request)
	if request != fixture.Request || queue.Len() > 0 {
		t.Errorf("%v is enqueued, and %d more", request, queue.Len())
	}
}
