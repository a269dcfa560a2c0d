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
	"github.com/stayput/stayput/internal/observe"
)

// TestOrphansAreConfirmed has a cache that lacks the pod's workload. The API server has it.
func TestOrphansAreConfirmed(t *testing.T) {
	c := newCluster(t)
	pod := c.prePulling(fixture.OwnedBy("Deployment", "web", "web"))
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
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
		t.Errorf("the pre-pull pod of a workload: %v", err)
	}
}

// prePulling adds a pre-pull pod.
func (c *cluster) prePulling(owner *metav1.OwnerReference) *corev1.Pod {
	c.T.Helper()
	prePullPod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Web.Namespace, Name: "pre-pull",
		Labels: map[string]string{inplace.LabelPrePull: "uid"}}}
	if owner != nil {
		prePullPod.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	c.Add(prePullPod)
	return prePullPod
}

func (c *cluster) orphans(cached client.Reader) *orphans {
	return &orphans{cached: observe.Reader{Reader: cached}, live: observe.Reader{Reader: c}, writer: c.writer()}
}

// TestOrphans checks that orphaned pre-pull pods are deleted. No plan would ever delete them.
func TestOrphans(t *testing.T) {
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
			prePullPod := c.prePulling(test.owner)
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
