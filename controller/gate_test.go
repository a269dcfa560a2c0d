package controller

import (
	"context"
	"fmt"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/controller/kinds"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/observe"
)

// leading and following are what gates learn from the election.
func leading() <-chan struct{} {
	elected := make(chan struct{})
	close(elected)
	return elected
}

func following() <-chan struct{} { return make(chan struct{}) }

// born adds a pod whose gate nobody has opened.
func (c *cluster) born(at time.Time) types.NamespacedName {
	c.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "born", CreationTimestamp: metav1.NewTime(at)},
		Spec:       corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: inplace.ConditionServing}}},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionFalse}}},
	}
	if err := c.Create(c.t.Context(), pod); err != nil {
		c.t.Fatal(err)
	}
	return client.ObjectKeyFromObject(pod)
}

func (c *cluster) pod(key types.NamespacedName) *corev1.Pod {
	c.t.Helper()
	pod := &corev1.Pod{}
	if err := c.Get(c.t.Context(), key, pod); err != nil {
		c.t.Fatal(err)
	}
	return pod
}

func TestGatesOpenNewbornPods(t *testing.T) {
	for name, test := range map[string]struct {
		elected <-chan struct{}
		age     time.Duration
		open    bool
	}{
		"leader":                      {leading(), 0, true},
		"follower leaves it at first": {following(), -time.Hour, false}, // a creation far ahead: no race with the clock
		"follower":                    {following(), time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			key := c.born(time.Now().Add(-test.age))
			g := &gates{client: c, elected: test.elected, prober: &Prober{client: c}}
			result, err := g.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			if err != nil {
				t.Fatal(err)
			}
			if open := kinds.IsTrue(c.pod(key), inplace.ConditionServing); open != test.open || g.prober.Ready() != test.open {
				t.Errorf("open %t, ready %t; want %t", open, g.prober.Ready(), test.open)
			}
			if waits := result.RequeueAfter > 0; waits == test.open {
				t.Errorf("looks again %t, want %t", waits, !test.open)
			}
		})
	}
}

func TestGatesLeaveTheLeadersAlone(t *testing.T) {
	c := newCluster(t)
	pod := c.snapshot().rollout.Pods[0]
	closeIt := pod.DeepCopy()
	for i := range closeIt.Status.Conditions {
		closeIt.Status.Conditions[i].Status = corev1.ConditionFalse
	}
	if err := c.Status().Update(t.Context(), closeIt); err != nil {
		t.Fatal(err)
	}
	g := &gates{client: c, elected: leading(), prober: &Prober{client: c}}
	if _, err := g.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pod)}); err != nil {
		t.Fatal(err)
	}
	if !inplace.Closed(c.pod(client.ObjectKeyFromObject(pod))) || c.patches != 0 {
		t.Error("a gate the leader has closed was opened")
	}
}

func TestGatesOnAnOutdatedPodAreQuiet(t *testing.T) {
	c := newCluster(t)
	c.refuse = func(object client.Object, _ string) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, object.GetName(), nil)
	}
	pod := c.pod(c.born(time.Now()))
	g := &gates{client: c, elected: leading(), prober: &Prober{client: c}}
	if err := g.open(t.Context(), pod, time.Now()); err != nil {
		t.Errorf("error %v, want none: the newer pod wakes us", err)
	}
	if g.prober.Ready() {
		t.Error("a write that failed counts as proof")
	}
}

func TestProberTriesAGatedPod(t *testing.T) {
	c := newCluster(t)
	p := &Prober{client: c}
	if p.Ready() {
		t.Fatal("ready before the first proof")
	}
	if again := p.probe(t.Context()); !p.Ready() || again != probeEvery {
		t.Errorf("ready %t, next probe in %s although the status can be written", p.Ready(), again)
	}
	c.refuse = func(client.Object, string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errText("no"))
	}
	if again := p.probe(t.Context()); p.Ready() || again != probeAgain {
		t.Errorf("ready %t, next probe in %s although no status can be written", p.Ready(), again)
	}
	p.wrote(time.Now().Add(-2 * probeLasts))
	if p.Ready() {
		t.Error("ready on an old proof")
	}
}

// One namespace whose policy refuses us may have more pods than all others.
func TestProberTriesDifferentNamespaces(t *testing.T) {
	c := newCluster(t)
	elsewhere := decode[corev1.Pod](t, fmt.Sprintf(podJSON, "elsewhere"))
	elsewhere.Namespace = "warehouse"
	c.add(elsewhere)
	c.refuse = func(object client.Object, _ string) error {
		if object.GetNamespace() == elsewhere.Namespace {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, object.GetName(), errText("no"))
	}
	p := &Prober{client: c}
	p.probe(t.Context())
	if !p.Ready() {
		t.Error("not ready, although only one namespace refuses")
	}
}

func TestProberAsksWithoutPods(t *testing.T) {
	for _, allowed := range []bool{true, false} {
		c := newCluster(t)
		if err := c.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(web.Namespace)); err != nil {
			t.Fatal(err)
		}
		answer := func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
			object.(*authorizationv1.SelfSubjectAccessReview).Status.Allowed = allowed
			return nil
		}
		p := &Prober{client: interceptor.NewClient(c.Client.(client.WithWatch), interceptor.Funcs{Create: answer})}
		p.probe(t.Context())
		if p.Ready() != allowed {
			t.Errorf("ready %t, want %t", p.Ready(), allowed)
		}
	}
}

func TestReleaseAll(t *testing.T) {
	c := newCluster(t)
	r := c.reconciler(nil)
	c.start(r)
	c.reconcile(r)
	born := c.born(time.Now())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := ReleaseAll(ctx, c, observe.Reader{Reader: c}); err != nil {
		t.Fatal(err)
	}
	if inplace.Settling(c.replicaSet("web-old")) || inplace.Settling(c.replicaSet("web-new")) {
		t.Error("a ReplicaSet is still marked as settling")
	}
	if c.replicaSet("web-new").Labels[inplace.LabelReleased] == "" {
		t.Error("the target is not marked as released")
	}
	if !kinds.IsTrue(c.pod(born), inplace.ConditionServing) {
		t.Error("a newborn pod's gate is not open")
	}
	for _, pod := range c.snapshot().rollout.Pods {
		if !kinds.IsTrue(pod, inplace.ConditionServing) {
			t.Errorf("the gate of %s is not open", pod.Name)
		}
	}
}

func TestReleaseAllWaitsForOthers(t *testing.T) {
	c := newCluster(t)
	conflicts := 2
	c.refuse = func(object client.Object, _ string) error {
		if conflicts--; conflicts < 0 {
			return nil
		}
		return apierrors.NewConflict(schema.GroupResource{Resource: "replicasets"}, object.GetName(), nil)
	}
	if err := ReleaseAll(t.Context(), c, observe.Reader{Reader: c}); err != nil {
		t.Fatal(err)
	}
	if c.replicaSet("web-new").Labels[inplace.LabelReleased] == "" {
		t.Error("the target was not released after the conflicts")
	}
}
