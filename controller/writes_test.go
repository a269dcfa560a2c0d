package controller

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/inplace"
)

var request = reconcile.Request{NamespacedName: web}

func errText(text string) error { return errors.New(text) }

func (c *cluster) writer() writer {
	return writer{client: c, live: c, memory: &memory{}, lease: leaseKey}
}

// label is a step that labels a pod.
func label(pod *corev1.Pod) inplace.PatchPod {
	return inplace.PatchPod{Pod: pod, Operations: []jsonpatch.Operation{
		jsonpatch.NewOperation("replace", "/metadata/resourceVersion", pod.ResourceVersion),
		jsonpatch.NewOperation("add", "/metadata/labels/color", "red"),
	}}
}

func TestCarryOutPassesOverWhatIsOutdated(t *testing.T) {
	c := newCluster(t)
	pods := c.snapshot().rollout.Pods
	pods[0].ResourceVersion = "1"
	gone := pods[1].DeepCopy()
	gone.Name = "gone"
	done := c.writer().carryOut(t.Context(), web, []inplace.Step{label(pods[0]), label(gone), label(pods[2])})
	if done.err != nil || !done.outdated || len(done.writes) != 1 {
		t.Fatalf("%d writes, outdated %t, error %v; want the third only, and no error", len(done.writes), done.outdated, done.err)
	}
	after := done.writes[0].after
	if after.GetName() != pods[2].Name || after.GetLabels()["color"] != "red" || after.GetResourceVersion() == pods[2].ResourceVersion {
		t.Errorf("the write returned %s with labels %v", after.GetName(), after.GetLabels())
	}
}

// gathering lets patches through when as many as are expected have come.
type gathering struct {
	client.Client
	missing atomic.Int32
	all     chan struct{}
}

func (g *gathering) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if g.missing.Add(-1) == 0 {
		close(g.all)
	}
	select {
	case <-g.all:
		return g.Client.Patch(ctx, object, patch, options...)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestCarryOutSideBySide(t *testing.T) {
	c := newCluster(t)
	pods := c.snapshot().rollout.Pods
	g := &gathering{Client: c, all: make(chan struct{})}
	g.missing.Store(int32(len(pods)))
	w := c.writer()
	w.client = g
	var steps []inplace.Step
	for _, pod := range pods {
		steps = append(steps, label(pod))
	}
	synctest.Test(t, func(t *testing.T) {
		done := w.carryOut(t.Context(), web, steps)
		if done.err != nil || len(done.writes) != len(steps) {
			t.Fatalf("%d of %d writes, error %v", len(done.writes), len(steps), done.err)
		}
		for i, made := range done.writes {
			if made.after.GetName() != pods[i].Name {
				t.Errorf("write %d is of %s, not of %s", i, made.after.GetName(), pods[i].Name)
			}
		}
	})
}

func TestCarryOutGoesOnAfterARefusal(t *testing.T) {
	c := newCluster(t)
	pods := c.snapshot().rollout.Pods
	c.refuse = func(object client.Object, _ string) error {
		if object.GetName() == pods[0].Name {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, object.GetName(), errText("no"))
		}
		return nil
	}
	steps := []inplace.Step{label(pods[0]), label(pods[1])}
	if done := c.writer().carryOut(t.Context(), web, steps); len(done.writes) != 1 || !errors.As(done.err, new(refusal)) {
		t.Errorf("carryOut stopped or lost the refusal: %+v", done)
	}
}

func TestCarryOutReturnsRemovedKeysAsRemoved(t *testing.T) {
	c := newCluster(t)
	old := c.replicaSet("web-old")
	step := inplace.PatchReplicaSet{ReplicaSet: old, Operations: []jsonpatch.Operation{jsonpatch.NewOperation("remove", "/metadata/labels/app", nil)}}
	done := c.writer().carryOut(t.Context(), web, []inplace.Step{step})
	if done.err != nil || len(done.writes) != 1 {
		t.Fatal(done)
	}
	if _, has := done.writes[0].after.GetLabels()["app"]; has {
		t.Error("the label that was removed is still there in what the write returned")
	}
}

func TestRefusalIsOnlyOnTheCurrentObject(t *testing.T) {
	unprocessable := apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", schema.GroupResource{Resource: "pods"}, "", "no", 0, false)
	for name, test := range map[string]struct {
		answer  error
		stale   bool
		refused bool
	}{
		"policy":                     {answer: unprocessable, refused: true},
		"an operation without place": {answer: unprocessable, stale: true},
		"too many requests":          {answer: apierrors.NewTooManyRequests("later", 1)},
		"server error":               {answer: apierrors.NewInternalError(errText("away"))},
		"network":                    {answer: errText("connection refused")},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.refuse = func(client.Object, string) error { return test.answer }
			pod := c.snapshot().rollout.Pods[0]
			if test.stale {
				pod.ResourceVersion = "1"
			}
			done := c.writer().carryOut(t.Context(), web, []inplace.Step{label(pod)})
			if refused := errors.As(done.err, new(refusal)); refused != test.refused || done.outdated != test.stale {
				t.Errorf("refused %t, outdated %t (%v); want %t, %t", refused, done.outdated, done.err, test.refused, test.stale)
			}
		})
	}
}

func TestMemory(t *testing.T) {
	pod := func(version string) *corev1.Pod {
		p := &corev1.Pod{}
		p.UID, p.ResourceVersion = "p", version
		return p
	}
	m := &memory{}
	if m.knows(web) || m.lagging(web, []client.Object{pod("1")}) != nil {
		t.Error("an empty memory knows something")
	}
	m.remember(web, pod("10"))
	for _, step := range []struct {
		cached []client.Object
		lags   bool
	}{
		{[]client.Object{pod("9")}, true},
		{[]client.Object{pod("9")}, true},
		{[]client.Object{pod("10")}, false},
		{[]client.Object{pod("9")}, false}, // seen once is forgotten
	} {
		if lags := m.lagging(web, step.cached) != nil; lags != step.lags {
			t.Errorf("cache at %s: lagging %t, want %t", step.cached[0].GetResourceVersion(), lags, step.lags)
		}
	}
	m.remember(web, pod("10"))
	if m.lagging(web, nil) != nil || m.lagging(web, []client.Object{pod("9")}) != nil {
		t.Error("an object that is gone is waited for")
	}
	if m.forget(web); m.knows(web) {
		t.Error("a forgotten Deployment is known")
	}
}
