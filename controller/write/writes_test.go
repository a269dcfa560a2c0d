package write

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/stayput/stayput/controller/internal/fixture"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/concurrency"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/steps"
)

func TestCarryOutPassesOverWhatIsOutdated(t *testing.T) {
	c := newCluster(t)
	pods := c.Snapshot().Read.Seen.Pods
	pods[0].ResourceVersion = "1"
	gone := pods[1].DeepCopy()
	gone.Name = "gone"
	done := c.writer().CarryOut(t.Context(), []steps.Step{fixture.Label(pods[0]), fixture.Label(gone), fixture.Label(pods[2])})
	if done.Err != nil || !done.Outdated || len(done.Writes) != 1 {
		t.Fatalf("%d writes, outdated %t, error %v; want the third only, and no error", len(done.Writes), done.Outdated, done.Err)
	}
	after := done.Writes[0].After
	if after.GetName() != pods[2].Name || after.GetLabels()["color"] != "red" || after.GetResourceVersion() == pods[2].ResourceVersion {
		t.Errorf("the write returned %s with labels %v", after.GetName(), after.GetLabels())
	}
}

// gathering is a client that delays patches until as many as expected have come.
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
	pods := c.Snapshot().Read.Seen.Pods
	g := &gathering{Client: c, all: make(chan struct{})}
	g.missing.Store(int32(len(pods)))
	w := c.writer()
	w.Client = g
	var todo []steps.Step
	for _, pod := range pods {
		todo = append(todo, fixture.Label(pod))
	}
	synctest.Test(t, func(t *testing.T) {
		done := w.CarryOut(t.Context(), todo)
		if done.Err != nil || len(done.Writes) != len(todo) {
			t.Fatalf("%d of %d writes, error %v", len(done.Writes), len(todo), done.Err)
		}
		for i, made := range done.Writes {
			if made.After.GetName() != pods[i].Name {
				t.Errorf("write %d is of %s, not of %s", i, made.After.GetName(), pods[i].Name)
			}
		}
	})
}

// TestCarryOutEndsWithTheTerm checks that writes end with the leader's Lease. The next leader plans anew what is not
// written then.
func TestCarryOutEndsWithTheTerm(t *testing.T) {
	c := newCluster(t)
	w := c.writer()
	todo := []steps.Step{fixture.Label(c.Snapshot().Read.Seen.Pods[0])}
	synctest.Test(t, func(t *testing.T) {
		waits := &gathering{Client: c, all: make(chan struct{})}
		waits.missing.Store(2) // patches; the second never comes
		w.Client = waits
		term, end := context.WithDeadlineCause(t.Context(), time.Now().Add(time.Second), ErrTermOver)
		defer end()
		if done := w.CarryOut(term, todo); done.Err != nil || !done.Outdated || len(done.Writes) > 0 {
			t.Errorf("%d writes, outdated %t, error %v; want no write, outdated", len(done.Writes), done.Outdated, done.Err)
		}
	})
}

// TestUrgentStepsDoNotWait: while no turn ends, a hold is renewed at once, however many steps wait beside it. They have no turn. That is no
// failure, and no success if nothing was written.
func TestUrgentStepsDoNotWait(t *testing.T) {
	c := newCluster(t)
	pods := c.Snapshot().Read.Seen.Pods
	renewal := steps.PatchReplicaSet{ReplicaSet: c.ReplicaSet("web-old"), Operations: []jsonpatch.Operation{
		jsonpatch.NewOperation("add", patches.Pointer("metadata", "labels", inplace.LabelRenewed), "20261130T000100Z")}}
	others := slices.Repeat([]steps.Step{fixture.Label(pods[1])}, concurrency.MostWrites)
	for name, test := range map[string]struct {
		todo []steps.Step
		made int
		late bool
	}{
		"both":          {append(slices.Clone(others), renewal), 1, false},
		"only the rest": {others, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				soon, end := context.WithTimeout(t.Context(), time.Minute)
				defer end()
				c.Refuse = func(client.Object, string) error { return soon.Err() }
				w := c.writer()
				w.Turns = &Turns{inFlight: concurrency.MostWrites} // which never end
				done := w.CarryOut(soon, test.todo)
				if done.Err != nil || len(done.Writes) != test.made || !done.Outdated || done.Late != test.late {
					t.Errorf("%d writes, outdated %t, late %t, error %v", len(done.Writes), done.Outdated, done.Late, done.Err)
				}
			})
		})
	}
}

// TestPodsStayWithoutATurn: a pod is taken out of service as planned within seconds, or not at all.
func TestPodsStayWithoutATurn(t *testing.T) {
	c := newCluster(t)
	out := steps.SetReady{Pod: c.Snapshot().Read.Seen.Pods[0], Out: true,
		Operations: []jsonpatch.Operation{jsonpatch.NewOperation("add", "/status/message", "out")}}
	for waits, want := range map[time.Duration]int{fresh - time.Second: 1, fresh + time.Second: 0} {
		synctest.Test(t, func(t *testing.T) {
			w := c.writer()
			w.Turns = &Turns{inFlight: concurrency.MostWrites}
			time.AfterFunc(waits, func() {
				w.Turns.lock.Lock()
				defer w.Turns.lock.Unlock()
				w.Turns.inFlight = 0
				w.Turns.give()
			})
			done := w.CarryOut(t.Context(), []steps.Step{out})
			if len(done.Writes) != want || done.Err != nil || done.Late != (want == 0) {
				t.Errorf("after %s: %d writes, late %t, error %v", waits, len(done.Writes), done.Late, done.Err)
			}
			time.Sleep(time.Minute)
		})
	}
}

// TestInsteadNeedsNoTurnOfItsOwn: patches that are refused, as many as may be in flight, are each followed by another one.
func TestInsteadNeedsNoTurnOfItsOwn(t *testing.T) {
	c := newCluster(t)
	pods := c.Snapshot().Read.Seen.Pods[:2]
	refused := map[string]bool{}
	var lock sync.Mutex
	c.Refuse = func(object client.Object, _ string) error {
		lock.Lock()
		defer lock.Unlock()
		if refused[object.GetName()] {
			return nil
		}
		refused[object.GetName()] = true
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, object.GetName(), fixture.ErrText("no"))
	}
	var todo []steps.Step
	for _, pod := range pods {
		patch := fixture.Label(pod)
		patch.Instead = func(string) steps.PatchPod { return fixture.Label(pod) }
		todo = append(todo, patch)
	}
	synctest.Test(t, func(t *testing.T) {
		w := c.writer()
		w.Turns = &Turns{}
		if done := w.CarryOut(t.Context(), todo); len(done.Writes) != len(pods) || done.Err != nil {
			t.Errorf("%d writes, error %v", len(done.Writes), done.Err)
		}
		if w.Turns.inFlight != 0 || len(w.Turns.lines) > 0 {
			t.Errorf("%d writes are in flight, and %d namespaces known", w.Turns.inFlight, len(w.Turns.lines))
		}
	})
}

func TestCarryOutGoesOnAfterARefusal(t *testing.T) {
	c := newCluster(t)
	pods := c.Snapshot().Read.Seen.Pods
	c.Refuse = func(object client.Object, _ string) error {
		if object.GetName() == pods[0].Name {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, object.GetName(), fixture.ErrText("no"))
		}
		return nil
	}
	todo := []steps.Step{fixture.Label(pods[0]), fixture.Label(pods[1])}
	if done := c.writer().CarryOut(t.Context(), todo); len(done.Writes) != 1 || !errors.As(done.Err, new(Refusal)) {
		t.Errorf("CarryOut stopped or lost the refusal: %+v", done)
	}
}

// TestRefusedAnswerIsNoFailure checks that an update does not fall back because a pod may not say what becomes of its request.
func TestRefusedAnswerIsNoFailure(t *testing.T) {
	c := newCluster(t)
	c.Refuse = func(client.Object, string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", fixture.ErrText("no"))
	}
	for _, answers := range []bool{true, false} {
		step := steps.PatchPod{Pod: c.Snapshot().Read.Seen.Pods[0], Answers: answers,
			Operations: []jsonpatch.Operation{jsonpatch.NewOperation("add", "/metadata/annotations", map[string]string{"says": "so"})}}
		if done := c.writer().CarryOut(t.Context(), []steps.Step{step}); (done.Err == nil) != answers || len(done.Writes) > 0 {
			t.Errorf("an answer %t: %+v", answers, done)
		}
	}
}

func TestCarryOutReturnsRemovedKeysAsRemoved(t *testing.T) {
	c := newCluster(t)
	old := c.ReplicaSet("web-old")
	step := steps.PatchReplicaSet{ReplicaSet: old,
		Operations: []jsonpatch.Operation{jsonpatch.NewOperation("remove", "/metadata/labels/app", nil)}}
	done := c.writer().CarryOut(t.Context(), []steps.Step{step})
	if done.Err != nil || len(done.Writes) != 1 {
		t.Fatal(done)
	}
	if _, has := done.Writes[0].After.GetLabels()["app"]; has {
		t.Error("the label that was removed is still there in what the write returned")
	}
}

func TestRefusalIsOnlyOnTheCurrentObject(t *testing.T) {
	unprocessable := apierrors.NewGenericServerResponse(
		http.StatusUnprocessableEntity, "patch", schema.GroupResource{Resource: "pods"}, "", "no", 0, false)
	for name, test := range map[string]struct {
		answer  error
		stale   bool
		refused bool
	}{
		"policy":                     {answer: unprocessable, refused: true},
		"a path that does not exist": {answer: unprocessable, stale: true},
		"too many requests":          {answer: apierrors.NewTooManyRequests("later", 1)},
		"server error":               {answer: apierrors.NewInternalError(fixture.ErrText("away"))},
		"network":                    {answer: fixture.ErrText("connection refused")},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.Refuse = func(client.Object, string) error { return test.answer }
			pod := c.Snapshot().Read.Seen.Pods[0]
			if test.stale {
				pod.ResourceVersion = "1"
			}
			done := c.writer().CarryOut(t.Context(), []steps.Step{fixture.Label(pod)})
			if refused := errors.As(done.Err, new(Refusal)); refused != test.refused || done.Outdated != test.stale {
				t.Errorf("refused %t, outdated %t (%v); want %t, %t", refused, done.Outdated, done.Err, test.refused, test.stale)
			}
		})
	}
}

// subresources notes which subresources are patched.
type subresources struct {
	client.Client
	patched []string
}

func (s *subresources) SubResource(name string) client.SubResourceClient {
	s.patched = append(s.patched, name)
	return s.Client.SubResource("status") // the only subresource of pods that the fake client can patch
}

func TestResizesGoToTheirSubresource(t *testing.T) {
	c := newCluster(t)
	pods, noted := c.Snapshot().Read.Seen.Pods, &subresources{Client: c}
	w := c.writer()
	w.Client = noted
	resize := fixture.Label(pods[0])
	resize.Resizes = true
	for _, step := range []steps.PatchPod{resize, fixture.Label(pods[1])} {
		if _, err := w.Carry(t.Context(), step); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(noted.patched, []string{"resize"}) {
		t.Errorf("patched were %q", noted.patched)
	}
}
