package controller

import (
	"context"
	"testing"

	"github.com/stayput/stayput/controller/internal/fixture"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/observe"
)

// keptOut adds a pod whose gate the leader has closed.
func (c *cluster) keptOut(owner *metav1.OwnerReference, annotations map[string]string) *corev1.Pod {
	c.T.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Web.Namespace, Name: "shut", Annotations: annotations},
		Spec:       corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: inplace.ConditionServing}}},
	}
	if owner != nil {
		pod.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	if err := c.Create(c.T.Context(), pod); err != nil {
		c.T.Fatal(err)
	}
	c.Observed(pod, 1, corev1.ConditionTrue)
	return pod
}

func TestOrphans(t *testing.T) {
	const patched = `{"hash":"new","generation":2,"containers":{"app":{"image":"app:v2","containerID":"old"}}}`
	surge := map[string]string{inplace.AnnotationSurgePod: "true", corev1.PodDeletionCost: "-2147483648"}
	for name, test := range map[string]struct {
		owner       *metav1.OwnerReference
		annotations map[string]string
		open, again bool
	}{
		"no controller":                    {nil, nil, true, false},
		"no controller, a surge pod":       {nil, surge, true, false},
		"no controller, patch not applied": {nil, map[string]string{inplace.AnnotationMove: patched}, false, false},
		"of a Deployment":                  {fixture.OwnedBy("ReplicaSet", "web-old", "web-old"), nil, false, true},
		"of a DaemonSet":                   {fixture.OwnedBy("DaemonSet", "agent", "agent"), nil, false, true},
		"of an orphaned ReplicaSet":        {fixture.OwnedBy("ReplicaSet", "bare", "bare"), nil, true, false},
		"of an earlier ReplicaSet":         {fixture.OwnedBy("ReplicaSet", "web-old", "earlier"), nil, true, false},
		"of an earlier DaemonSet":          {fixture.OwnedBy("DaemonSet", "agent", "earlier"), nil, true, false},
		"of a StatefulSet":                 {fixture.OwnedBy("StatefulSet", "web", "web"), nil, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.Add(&apps.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Web.Namespace, Name: "agent", UID: "agent"}})
			c.Add(&apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Web.Namespace, Name: "bare", UID: "bare"}})
			pod := c.keptOut(test.owner, test.annotations)
			result, err := c.orphans(c).Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pod)})
			if err != nil {
				t.Fatal(err)
			}
			if open := apps.IsTrue(c.Pod(client.ObjectKeyFromObject(pod)), inplace.ConditionServing); open != test.open {
				t.Errorf("the gate is open: %t, want %t", open, test.open)
			}
			if again := result.RequeueAfter > 0; again != test.again {
				t.Errorf("requeued: %t, want %t", again, test.again)
			}
		})
	}
}

// TestOrphansAreConfirmed has a cache that lacks the pod's workload. The API server has it.
func TestOrphansAreConfirmed(t *testing.T) {
	c := newCluster(t)
	pod := c.keptOut(fixture.OwnedBy("ReplicaSet", "web-old", "web-old"), nil)
	before := interceptor.NewClient(c.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, from client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, is := object.(*apps.Deployment); is {
				return from.Get(ctx, client.ObjectKey{Name: "not there"}, object, options...)
			}
			return from.Get(ctx, key, object, options...)
		},
	})
	if _, err := c.orphans(before).Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pod)}); err != nil {
		t.Fatal(err)
	}
	if !readiness.Closed(c.Pod(client.ObjectKeyFromObject(pod))) {
		t.Error("the gate of a pod that has a workload was opened")
	}
}

func (c *cluster) orphans(cached client.Reader) *orphans {
	return &orphans{cached: observe.Reader{Reader: cached}, live: observe.Reader{Reader: c}, writer: c.writer()}
}

// TestOrphanPrePullPods checks that orphaned pre-pull pods are deleted. No plan would ever delete them.
func TestOrphanPrePullPods(t *testing.T) {
	for name, test := range map[string]struct {
		owner       *metav1.OwnerReference
		gone, again bool
	}{
		"no controller":                   {nil, true, false},
		"of a Deployment":                 {fixture.OwnedBy("Deployment", "web", "web"), false, true},
		"of an earlier Deployment":        {fixture.OwnedBy("Deployment", "web", "earlier"), true, false},
		"of a revision of a DaemonSet":    {fixture.OwnedBy("ControllerRevision", "agent-1", "agent-1"), false, true},
		"of an orphaned revision":         {fixture.OwnedBy("ControllerRevision", "bare", "bare"), true, false},
		"of a Job, with the label":        {fixture.OwnedBy("Job", "job", "job"), false, false},
		"of a ReplicaSet, with the label": {fixture.OwnedBy("ReplicaSet", "web-old", "web-old"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.Add(&apps.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Web.Namespace, Name: "agent", UID: "agent"}})
			c.Add(&apps.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Web.Namespace, Name: "agent-1", UID: "agent-1",
				OwnerReferences: []metav1.OwnerReference{*fixture.OwnedBy("DaemonSet", "agent", "agent")}}})
			c.Add(&apps.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Web.Namespace, Name: "bare", UID: "bare"}})
			prePullPod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Web.Namespace, Name: "pre-pull",
				Labels: map[string]string{inplace.LabelPrePull: "uid"}}}
			if test.owner != nil {
				prePullPod.OwnerReferences = []metav1.OwnerReference{*test.owner}
			}
			c.Add(prePullPod)
			result, err := c.orphans(c).Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(prePullPod)})
			if err != nil {
				t.Fatal(err)
			}
			err = c.Get(t.Context(), client.ObjectKeyFromObject(prePullPod), prePullPod)
			if gone := apierrors.IsNotFound(err); gone != test.gone {
				t.Errorf("gone: %t (%v), want %t", gone, err, test.gone)
			}
			if again := result.RequeueAfter > 0; again != test.again {
				t.Errorf("requeued: %t, want %t", again, test.again)
			}
		})
	}
}
