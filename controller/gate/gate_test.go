package gate

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stayput/stayput/controller/internal/fixture"

	authorizationv1 "k8s.io/api/authorization/v1"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/observe"
)

// leading and following return the channel of the election, on the leader and on another manager.
func leading() <-chan struct{} {
	elected := make(chan struct{})
	close(elected)
	return elected
}

func following() <-chan struct{} { return make(chan struct{}) }

func TestGatesOpenNewPods(t *testing.T) {
	for name, test := range map[string]struct {
		elected <-chan struct{}
		age     time.Duration
		open    bool
	}{
		"leader":             {leading(), 0, true},
		"follower, at first": {following(), -time.Hour, false}, // created in the future, so that the clock does not matter
		"follower":           {following(), time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			key := c.Created(time.Now().Add(-test.age))
			g := &Gates{Client: c, Cached: observe.Reader{Reader: c}, Elected: test.elected, Prober: &Prober{Client: c}}
			result, err := g.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			if err != nil {
				t.Fatal(err)
			}
			if open := apps.IsTrue(c.Pod(key), inplace.ConditionServing); open != test.open || g.Prober.Ready() != test.open {
				t.Errorf("open %t, ready %t; want %t", open, g.Prober.Ready(), test.open)
			}
			if waits := result.RequeueAfter > 0; waits == test.open {
				t.Errorf("requeued %t, want %t", waits, !test.open)
			}
		})
	}
}

func TestGatesLeaveTheLeadersAlone(t *testing.T) {
	c := newCluster(t)
	pod := c.Snapshot().Read.Seen.Pods[0]
	closeIt := pod.DeepCopy()
	for i := range closeIt.Status.Conditions {
		closeIt.Status.Conditions[i].Status = corev1.ConditionFalse
	}
	if err := c.Status().Update(t.Context(), closeIt); err != nil {
		t.Fatal(err)
	}
	g := &Gates{Client: c, Cached: observe.Reader{Reader: c}, Elected: leading(), Prober: &Prober{Client: c}}
	if _, err := g.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pod)}); err != nil {
		t.Fatal(err)
	}
	if !readiness.Closed(c.Pod(client.ObjectKeyFromObject(pod))) || c.Patches != 0 {
		t.Error("a gate the leader has closed was opened")
	}
}

func TestGatesOnAnOutdatedPodAreQuiet(t *testing.T) {
	c := newCluster(t)
	c.Refuse = func(object client.Object, _ string) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, object.GetName(), nil)
	}
	pod := c.Pod(c.Created(time.Now()))
	g := &Gates{Client: c, Cached: observe.Reader{Reader: c}, Elected: leading(), Prober: &Prober{Client: c}}
	if err := g.open(t.Context(), pod, time.Now()); err != nil {
		t.Errorf("error %v, want none: the event of the newer pod follows", err)
	}
	if g.Prober.Ready() {
		t.Error("a failed write counts as proof")
	}
}

func TestProberTriesAGatedPod(t *testing.T) {
	c := newCluster(t)
	p := &Prober{Client: c}
	if p.Ready() {
		t.Fatal("ready before the first proof")
	}
	if again := p.probe(t.Context()); !p.Ready() || again != probeEvery {
		t.Errorf("ready %t, next probe in %s although the status can be written", p.Ready(), again)
	}
	c.Refuse = func(client.Object, string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", fixture.ErrText("no"))
	}
	if again := p.probe(t.Context()); p.Ready() || again != probeAgain {
		t.Errorf("ready %t, next probe in %s although no status can be written", p.Ready(), again)
	}
	p.wrote(time.Now().Add(-2 * probeLasts))
	if p.Ready() {
		t.Error("ready on an old proof")
	}
}

// TestProberTriesDifferentNamespaces has a namespace whose policy refuses Stayput's writes. Such a namespace may have
// more pods than all others.
func TestProberTriesDifferentNamespaces(t *testing.T) {
	c := newCluster(t)
	elsewhere := fixture.Decode[corev1.Pod](t, fmt.Sprintf(fixture.PodJSON, "elsewhere"))
	elsewhere.Namespace = "warehouse"
	c.Add(elsewhere)
	c.Refuse = func(object client.Object, _ string) error {
		if object.GetNamespace() == elsewhere.Namespace {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, object.GetName(), fixture.ErrText("no"))
	}
	p := &Prober{Client: c}
	p.probe(t.Context())
	if !p.Ready() {
		t.Error("not ready, although only one namespace refuses")
	}
}

func TestProberAsksWithoutPods(t *testing.T) {
	for _, allowed := range []bool{true, false} {
		c := newCluster(t)
		if err := c.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(fixture.Web.Namespace)); err != nil {
			t.Fatal(err)
		}
		answer := func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
			object.(*authorizationv1.SelfSubjectAccessReview).Status.Allowed = allowed
			return nil
		}
		p := &Prober{Client: interceptor.NewClient(c.Client.(client.WithWatch), interceptor.Funcs{Create: answer})}
		p.probe(t.Context())
		if p.Ready() != allowed {
			t.Errorf("ready %t, want %t", p.Ready(), allowed)
		}
	}
}
