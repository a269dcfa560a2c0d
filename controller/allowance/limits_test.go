package allowance

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/controller/kinds"
	"github.com/stayput/stayput/controller/write"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/concurrency"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/steps"
)

// RestartingPods implements restartReader.
func (s *shop) RestartingPods(context.Context) ([]*corev1.Pod, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return slices.DeleteFunc(slices.Clone(s.pods), func(pod *corev1.Pod) bool { return !concurrency.MayCount(pod) }), s.err
}

// NodesOf implements restartReader.
func (s *shop) NodesOf(context.Context, []*corev1.Pod) ([]*corev1.Node, error) { return nil, s.err }

// VersionOf implements restartReader.
func (s *shop) VersionOf(_ context.Context, key types.NamespacedName, uid types.UID) (string, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, pod := range s.pods {
		if pod.UID == uid && pod.Name == key.Name {
			return pod.ResourceVersion, s.err
		}
	}
	return "", s.err
}

// within returns where so many pods get their permission at a time, of a leader that has led for long.
func within(most int, cached *shop) *Restarts {
	return &Restarts{Limits: concurrency.Limits{{Flag: concurrency.FlagTotal, Most: most}}, Cached: cached,
		since: time.Now().Add(-time.Hour)}
}

// update returns the rollout of a Deployment with these pods, in the namespace of the first.
func update(name string, pods ...*corev1.Pod) kinds.Rollout {
	return kinds.Deployment{Rollout: &deployments.Rollout{
		Deployment: &apps.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: pods[0].Namespace, Name: name, UID: types.UID(name)}},
		Seen:       engine.Snapshot{Pods: pods, Settings: inplace.Settings{}}}}
}

// permit returns the names of the pods of the workload that may restart.
func permit(t *testing.T, r *Restarts, rollout kinds.Rollout, pods ...*corev1.Pod) ([]string, func(write.Outcome)) {
	t.Helper()
	kept, settle, confirmed := r.Confirm(t.Context(), rollout, steps.Plan{}, taking(pods...))
	if confirmed != (len(kept) == len(pods)) {
		t.Errorf("%d of %d steps are kept, confirmed: %t", len(kept), len(pods), confirmed)
	}
	var names []string
	for _, step := range kept {
		names = append(names, steps.Disrupted(step).Name)
	}
	return names, settle
}

// TestThePermissionIsGivenOnce: of two workloads one waits until the pod of the other is Ready again, whatever the cache shows.
func TestThePermissionIsGivenOnce(t *testing.T) {
	takes := func(a *corev1.Pod) write.Outcome { return written(a, takenOut(a, "2")) }
	back := func(a *corev1.Pod) *corev1.Pod {
		again := a.DeepCopy()
		again.ResourceVersion = "3"
		return again
	}
	for name, test := range map[string]struct {
		settled func(a *corev1.Pod) write.Outcome
		shown   func(a *corev1.Pod) *corev1.Pod
		free    bool
	}{
		"not written yet":     {},
		"written, not shown":  {settled: takes},
		"written and shown":   {settled: takes, shown: func(a *corev1.Pod) *corev1.Pod { return takenOut(a, "2") }},
		"written and back":    {settled: takes, shown: back, free: true},
		"refused, as too old": {settled: func(*corev1.Pod) write.Outcome { return write.Outcome{Outdated: true} }, free: true},
		"perhaps written":     {settled: func(*corev1.Pod) write.Outcome { return write.Outcome{Err: fixture.ErrText("timeout")} }},
		"another write failed": {settled: func(a *corev1.Pod) write.Outcome {
			done := takes(a)
			done.Err = fixture.ErrText("timeout")
			return done
		}},
	} {
		a, b := pod("a"), pod("b")
		cached := &shop{pods: []*corev1.Pod{a, b}}
		r := within(1, cached)
		first, settle := permit(t, r, update("one", a), a)
		if !slices.Equal(first, []string{"a"}) {
			t.Fatalf("%s: %v may restart first", name, first)
		}
		if test.settled != nil {
			settle(test.settled(a))
		}
		if test.shown != nil {
			cached.show(test.shown(a))
		}
		if second, _ := permit(t, r, update("two", b), b); (len(second) == 1) != test.free {
			t.Errorf("%s: then %v may restart, want b: %t", name, second, test.free)
		}
		if again, _ := permit(t, r, update("one", a), a); !test.free && len(again) != 1 && test.shown == nil {
			t.Errorf("%s: the pod that may restart needs another permission", name)
		}
	}
}

// TestWorkersShareLimits has many workers restart pods of many workloads at once.
func TestWorkersShareLimits(t *testing.T) {
	const workloads, most = 40, 7
	var pods []*corev1.Pod
	for i := range workloads {
		pods = append(pods, pod(fmt.Sprint("p", i)))
	}
	r, taken, all := within(most, &shop{pods: pods}), make([]int, workloads), sync.WaitGroup{}
	for i, each := range pods {
		all.Go(func() {
			kept, settle, _ := r.Confirm(t.Context(), update(each.Name, each), steps.Plan{}, taking(each))
			taken[i] = len(kept)
			if len(kept) > 0 {
				settle(written(each, takenOut(each, "2")))
			}
		})
	}
	all.Wait()
	sum := 0
	for _, one := range taken {
		sum += one
	}
	if sum != most {
		t.Errorf("%d pods restart, want %d", sum, most)
	}
}

// lagging is a cache that shows a write right after it was read for the first time.
type lagging struct {
	*shop
	shows func()
}

func (l *lagging) then() {
	l.shows()
	l.shows = func() {}
}

// RestartingPods implements restartReader.
func (l *lagging) RestartingPods(ctx context.Context) ([]*corev1.Pod, error) {
	defer l.then()
	return l.shop.RestartingPods(ctx)
}

// VersionOf implements restartReader.
func (l *lagging) VersionOf(ctx context.Context, key types.NamespacedName, uid types.UID) (string, error) {
	defer l.then()
	return l.shop.VersionOf(ctx, key, uid)
}

// TestAWriteThatAppearsMeanwhileCounts: a pod counts also if the cache shows what was written to it while pods are counted.
func TestAWriteThatAppearsMeanwhileCounts(t *testing.T) {
	a, b := pod("a"), pod("b")
	cached := &shop{pods: []*corev1.Pod{a, b}}
	r := within(1, cached)
	_, settle := permit(t, r, update("one", a), a)
	settle(written(a, takenOut(a, "2")))
	r.Cached = &lagging{cached, func() { cached.show(takenOut(a, "2")) }}
	if second, _ := permit(t, r, update("two", b), b); len(second) > 0 {
		t.Errorf("%v may restart besides", second)
	}
}

// TestADoubtfulWriteStillCounts: a write that may have been made, although its answer was an error, counts also after a second one was
// refused as too old.
func TestADoubtfulWriteStillCounts(t *testing.T) {
	a, b := pod("a"), pod("b")
	r := within(1, &shop{pods: []*corev1.Pod{a, b}})
	for _, done := range []write.Outcome{{Err: fixture.ErrText("timeout")}, {Outdated: true}} {
		_, settle := permit(t, r, update("one", a), a)
		settle(done)
	}
	if second, _ := permit(t, r, update("two", b), b); len(second) > 0 {
		t.Errorf("%v may restart besides", second)
	}
}

// waits is a plan whose pods wait for the limit.
func waits(pods ...*corev1.Pod) steps.Plan {
	return steps.Plan{Decision: steps.Decision{Held: true}, Progress: steps.Progress{Started: time.Now()},
		AwaitsLimit: steps.AwaitsLimit{Flag: concurrency.FlagTotal, Pods: pods, Most: len(pods)}}
}

// TestWhatWaitsIsWoken: when a pod is back, the next workload is woken, and what it may take is kept for it.
func TestWhatWaitsIsWoken(t *testing.T) {
	a, b, c := pod("a"), pod("b"), pod("c")
	c.Namespace = "other"
	cached := &shop{pods: []*corev1.Pod{takenOut(a, "2"), b, c}}
	r, woken := within(1, cached), []string{}
	plans := func(name string, plan steps.Plan, own *corev1.Pod) {
		if err := r.Planned(t.Context(), update(name, own), plan, func() { woken = append(woken, name) }); err != nil {
			t.Fatal(err)
		}
	}
	plans("same", waits(b), b)
	plans("elsewhere", waits(c), c)
	if len(woken) > 0 {
		t.Errorf("%v are woken, and no pod is back", woken)
	}
	cached.show(a)
	r.latest = map[string]int{"shop": 1}
	plans("first", steps.Plan{}, a)
	if !slices.Equal(woken, []string{"elsewhere"}) {
		t.Errorf("%v are woken, want the workload of the other namespace", woken)
	}
	plans("same", waits(b), b)
	if share, err := r.Share(t.Context(), update("same", b)); err != nil || share.Refusal(b, nil, time.Now()) == (concurrency.Refusal{}) {
		t.Errorf("what is kept for another workload is taken, %v", err)
	}
	if share, err := r.Share(t.Context(), update("elsewhere", c)); err != nil || share.Refusal(c, nil, time.Now()) != (concurrency.Refusal{}) {
		t.Errorf("the workload that was woken may not restart its pod, %v", err)
	}
	plans("elsewhere", steps.Plan{}, c) // paused, for example
	if !slices.Equal(woken, []string{"elsewhere", "same"}) {
		t.Errorf("%v are woken, want the one that waits besides", woken)
	}
}

// takes is a plan that takes the pods out of service.
func takes(pods ...*corev1.Pod) steps.Plan {
	return steps.Plan{Decision: steps.Decision{Held: true}, Progress: steps.Progress{Started: time.Now()}, Steps: taking(pods...)}
}

// TestTheTurnIsKeptUntilItIsConfirmed: between the plan that takes a pod out of service and its permission, or while the plan waits for a
// batch window, no other workload gets the place. If it is not free any more, the workload still waits, and is woken.
func TestTheTurnIsKeptUntilItIsConfirmed(t *testing.T) {
	a, b, c := pod("a"), pod("b"), pod("c")
	c.Namespace = "other"
	deferred := waits()
	deferred.AwaitsLimit, deferred.Next = steps.AwaitsLimit{}, []*corev1.Pod{c}
	for name, plan := range map[string]steps.Plan{"planned": takes(c), "deferred": deferred} {
		cached, woken := &shop{pods: []*corev1.Pod{a, b, c}}, 0
		r := within(1, cached)
		r.latest = map[string]int{"shop": 1}
		if err := r.Planned(t.Context(), update("elsewhere", c), plan, func() { woken++ }); err != nil {
			t.Fatal(err)
		}
		if taken, _ := permit(t, r, update("same", b), b); len(taken) > 0 {
			t.Errorf("%s: %v takes the place", name, taken)
		}
		cached.show(takenOut(a, "2")) // by a user, or another leader
		if taken, _ := permit(t, r, update("elsewhere", c), c); len(taken) > 0 || woken > 0 {
			t.Errorf("%s: %v may restart, woken %d times, and there is no place", name, taken, woken)
		}
		cached.show(a)
		if err := r.Planned(t.Context(), update("first", a), steps.Plan{}, func() {}); err != nil || woken != 1 {
			t.Errorf("%s: it is woken %d times, %v", name, woken, err)
		}
	}
}

// TestAPromiseIsKept: a workload that was woken gets its place, although one of another namespace asks meanwhile that would be first.
func TestAPromiseIsKept(t *testing.T) {
	b, c := pod("b"), pod("c")
	c.Namespace = "other"
	r := within(1, &shop{pods: []*corev1.Pod{b, c}})
	r.latest = map[string]int{"shop": 1}
	for _, one := range []*corev1.Pod{b, c} {
		if err := r.Planned(t.Context(), update(one.Name, one), waits(one), func() {}); err != nil {
			t.Fatal(err)
		}
	}
	if taken, _ := permit(t, r, update("c", c), c); len(taken) > 0 {
		t.Errorf("%v takes the place", taken)
	}
	if taken, _ := permit(t, r, update("b", b), b); len(taken) != 1 {
		t.Error("the workload that was woken does not get its place")
	}
}

// TestAPlaceThatIsNotTakenGoesToOthers: a workload that waits is woken when a pod that had its permission was not written.
func TestAPlaceThatIsNotTakenGoesToOthers(t *testing.T) {
	a, b := pod("a"), pod("b")
	r, woken := within(1, &shop{pods: []*corev1.Pod{a, b}}), 0
	_, settle := permit(t, r, update("one", a), a)
	if err := r.Planned(t.Context(), update("two", b), waits(b), func() { woken++ }); err != nil || woken > 0 {
		t.Fatalf("woken %d times, %v", woken, err)
	}
	settle(write.Outcome{Outdated: true})
	if woken != 1 {
		t.Errorf("woken %d times", woken)
	}
}

// TestAPlaceThatBecomesFreeByItself: a workload that waits is woken although nothing is planned.
func TestAPlaceThatBecomesFreeByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pod("a"), pod("b")
		cached := &shop{pods: []*corev1.Pod{takenOut(a, "2"), b}}
		r, woken := within(1, cached), 0
		if err := r.Planned(t.Context(), update("two", b), waits(b), func() { woken++ }); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		go func() { _ = r.Start(ctx) }()
		time.Sleep(10 * lookEvery)
		before := woken
		cached.show(a)
		time.Sleep(lookEvery)
		synctest.Wait()
		stop()
		if before > 0 || woken != 1 {
			t.Errorf("woken %d times before, and %d in all", before, woken)
		}
	})
}

// TestRequestedRestartsWaitForTheirTurn: a place is also kept for a pod whose own annotation asks for a restart, when there is no update.
func TestRequestedRestartsWaitForTheirTurn(t *testing.T) {
	a, b, c := pod("a"), pod("b"), pod("c")
	c.Namespace = "other"
	cached := &shop{pods: []*corev1.Pod{takenOut(a, "2"), b, c}}
	r := within(1, cached)
	r.latest = map[string]int{"shop": 1}
	asked := waits(c)
	asked.Decision, asked.Progress = steps.Decision{}, steps.Progress{}
	for name, plan := range map[string]steps.Plan{"update": waits(b), "asked": asked} {
		if err := r.Planned(t.Context(), update(name, plan.AwaitsLimit.Pods...), plan, func() {}); err != nil {
			t.Fatal(err)
		}
	}
	cached.show(a)
	if share, err := r.Share(t.Context(), update("update", b)); err != nil || share.Refusal(b, nil, time.Now()) == (concurrency.Refusal{}) {
		t.Errorf("an update takes the place of the pod whose turn it is, %v", err)
	}
}

// TestRequestsExpire: a workload that is not planned again keeps nothing from others.
func TestRequestsExpire(t *testing.T) {
	a, b := pod("a"), pod("b")
	for name, test := range map[string]struct {
		ago, woken time.Duration
		free       bool
	}{
		"it just asked":             {0, time.Hour, false},
		"it asked long ago":         {remembered + 1, time.Hour, true},
		"it was just woken":         {time.Second, 0, false},
		"it was woken a moment ago": {collecting + 2, collecting + 1, true},
	} {
		r, now := within(1, &shop{pods: []*corev1.Pod{a, b}}), time.Now()
		made := requestOf(update("gone", a), waits(a), []*corev1.Pod{a}, 1)
		r.requests = map[types.UID]request{"gone": {Request: made, at: now.Add(-test.ago), woken: now.Add(-test.woken), wake: func() {}}}
		share, err := r.Share(t.Context(), update("two", b))
		if free := share.Refusal(b, nil, now) == (concurrency.Refusal{}); err != nil || free != test.free {
			t.Errorf("%s: the other may restart: %t, %v", name, free, err)
		}
	}
}

// TestNothingRestartsUncounted: a leader that is new, or cannot read its cache, takes no pod out of service. Other steps are carried out,
// and without limits nothing is read.
func TestNothingRestartsUncounted(t *testing.T) {
	a := pod("a")
	todo := append(taking(a), steps.SetReady{Pod: a}, steps.PatchPod{Pod: a, Stops: true, Drained: true})
	young, unread := within(1, &shop{pods: []*corev1.Pod{a}}), within(1, &shop{err: fixture.ErrText("away")})
	young.since = time.Now()
	for name, test := range map[string]struct {
		r    *Restarts
		kept int
	}{"new": {young, 2}, "unread": {unread, 2}, "without limits": {nil, 3}} {
		kept, settle, confirmed := test.r.Confirm(t.Context(), update("one", a), steps.Plan{}, todo)
		settle(write.Outcome{})
		if len(kept) != test.kept || confirmed != (test.kept == len(todo)) {
			t.Errorf("%s: %d steps are kept, confirmed: %t", name, len(kept), confirmed)
		}
	}
	if share, err := (*Restarts)(nil).Share(t.Context(), update("one", a)); share != nil || err != nil {
		t.Errorf("without limits there is a share: %v, %v", share, err)
	}
}
