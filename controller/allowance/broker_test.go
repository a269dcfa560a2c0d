package allowance

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/controller/write"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/concurrency"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// shop is a namespace as a cache has it, or the API server.
type shop struct {
	lock    sync.Mutex
	budgets []*policyv1.PodDisruptionBudget
	pods    []*corev1.Pod
	err     error
}

func (s *shop) DisruptionBudgets(context.Context, string) ([]*policyv1.PodDisruptionBudget, error) {
	return s.budgets, s.err
}

func (s *shop) NamespacePods(context.Context, string) ([]*corev1.Pod, error) {
	defer runtime.Gosched() // so that two workers may count the same
	s.lock.Lock()
	defer s.lock.Unlock()
	return slices.Clone(s.pods), s.err
}

// RestartingPods implements reader.
func (s *shop) RestartingPods(context.Context) ([]*corev1.Pod, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return slices.DeleteFunc(slices.Clone(s.pods), func(pod *corev1.Pod) bool { return !concurrency.MayCount(pod) }), s.err
}

// NodesOf implements reader.
func (s *shop) NodesOf(context.Context, []*corev1.Pod) ([]*corev1.Node, error) { return nil, s.err }

// VersionOf implements reader.
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

// show has the cache show a version of a pod.
func (s *shop) show(pod *corev1.Pod) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for i := range s.pods {
		if s.pods[i].UID == pod.UID {
			s.pods[i] = pod
		}
	}
}

// pod returns a pod that is Ready, with version 1.
func pod(name string) *corev1.Pod {
	ready := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), ResourceVersion: "1",
		Labels: map[string]string{"app": "web"}}}
	ready.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return ready
}

// takenOut returns the pod just taken out of service.
func takenOut(pod *corev1.Pod, version string) *corev1.Pod {
	taken, now := pod.DeepCopy(), time.Now()
	taken.ResourceVersion = version
	taken.Status.Conditions = []corev1.PodCondition{readiness.TakenOutUntil(pod, now.Add(time.Minute), now)}
	return taken
}

// allowing returns a PodDisruptionBudget under which so many of the pods must be healthy.
func allowing(required int32, pods []*corev1.Pod) []*policyv1.PodDisruptionBudget {
	healthy := int32(len(pods))
	return []*policyv1.PodDisruptionBudget{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status: policyv1.PodDisruptionBudgetStatus{CurrentHealthy: healthy, DesiredHealthy: required, DisruptionsAllowed: healthy - required,
			ExpectedPods: healthy}}}
}

// workload returns the rollout of a Deployment with these pods, in the namespace of the first, that asks for PodDisruptionBudgets.
func workload(name string, pods ...*corev1.Pod) engine.Rollout {
	return &deployments.Rollout{
		Deployment: &apps.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: pods[0].Namespace, Name: name, UID: types.UID(name)}},
		Seen:       engine.Snapshot{Pods: pods, Settings: inplace.Settings{DisruptionBudgets: true}}}
}

func taking(pods ...*corev1.Pod) (todo []steps.Step) {
	for _, pod := range pods {
		todo = append(todo, steps.SetReady{Pod: pod, Out: true})
	}
	return todo
}

// written is the outcome of a step that was carried out.
func written(before, after *corev1.Pod) write.Outcome {
	return write.Outcome{Writes: []write.Done{{Step: steps.SetReady{Pod: before, Out: true}, Before: before, After: after}}}
}

// limited returns a Broker of a leader that has led for long, under which so many pods may restart at a time.
func limited(most int, cached reader) *Broker {
	return &Broker{Limits: concurrency.Limits{{Flag: concurrency.FlagTotal, Most: most}}, Cached: cached, Live: cached,
		since: time.Now().Add(-time.Hour)}
}

// budgeted returns a cluster with one PodDisruptionBudget that lets so many of the pods go, and a Broker without limits.
func budgeted(allowed int, pods ...*corev1.Pod) (*shop, *Broker) {
	cluster := &shop{budgets: allowing(int32(len(pods)-allowed), pods), pods: pods}
	return cluster, &Broker{Cached: cluster, Live: cluster}
}

// reserve returns the names of the pods that may be taken.
func reserve(t *testing.T, b *Broker, rollout engine.Rollout, todo []steps.Step) ([]string, func(write.Outcome)) {
	t.Helper()
	kept, settle, all := b.Reserve(t.Context(), rollout, todo)
	if all != (len(kept) == len(todo)) {
		t.Errorf("%d of %d steps are kept, all: %t", len(kept), len(todo), all)
	}
	var names []string
	for _, step := range kept {
		names = append(names, steps.Disrupted(step).Name)
	}
	return names, settle
}

// TestTheLastPlaceIsGivenOnce takes a pod of each of two workloads at the same moment, where one may be taken: by a limit, and by a
// PodDisruptionBudget. One of them waits, until the pod of the other is Ready again; what became of the write meanwhile decides how long.
func TestTheLastPlaceIsGivenOnce(t *testing.T) {
	takes := func(a *corev1.Pod) write.Outcome { return written(a, takenOut(a, "2")) }
	back := func(a *corev1.Pod) *corev1.Pod {
		again := a.DeepCopy()
		again.ResourceVersion = "3"
		return again
	}
	for name, test := range map[string]struct {
		settled func(a *corev1.Pod) write.Outcome
		shown   func(a *corev1.Pod) *corev1.Pod
		// free is whether b may be taken.
		free bool
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
		"an old version, again": {settled: takes, shown: func(a *corev1.Pod) *corev1.Pod { return a }},
	} {
		a, b := pod("a"), pod("b")
		cached := &shop{pods: []*corev1.Pod{a, b}}
		under, broker := budgeted(1, a, b)
		for by, broker := range map[string]*Broker{"limit": limited(1, cached), "budget": broker} {
			taken, settle := reserve(t, broker, workload("one", a), taking(a))
			if !slices.Equal(taken, []string{"a"}) {
				t.Fatalf("%s, %s: %v are taken first", by, name, taken)
			}
			if test.settled != nil {
				settle(test.settled(a))
			}
			if test.shown != nil {
				cached.show(test.shown(a))
				under.show(test.shown(a))
			}
			if taken, _ := reserve(t, broker, workload("two", b), taking(b)); (len(taken) == 1) != test.free {
				t.Errorf("%s, %s: then %v are taken, want b: %t", by, name, taken, test.free)
			}
			cached.show(a)
			under.show(a)
		}
	}
}

// TestWorkersShareWhatIsLeft has many workers take pods of many workloads at once.
func TestWorkersShareWhatIsLeft(t *testing.T) {
	const workloads, allowed = 40, 7
	var pods []*corev1.Pod
	for i := range workloads {
		pods = append(pods, pod(fmt.Sprint("p", i)))
	}
	_, both := budgeted(allowed, pods...)
	_, budget := budgeted(allowed, pods...)
	both.Limits = concurrency.Limits{{Flag: concurrency.FlagTotal, Most: allowed}}
	for name, broker := range map[string]*Broker{"limit": limited(allowed, &shop{pods: pods}), "budget": budget, "both": both} {
		broker.since = time.Now().Add(-time.Hour)
		taken, all := make([]int, workloads), sync.WaitGroup{}
		for i, each := range pods {
			all.Go(func() {
				kept, settle, _ := broker.Reserve(t.Context(), workload(each.Name, each), taking(each))
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
		if sum != allowed {
			t.Errorf("%s: %d pods are taken, want %d", name, sum, allowed)
		}
	}
}

// TestTheStricterDecides: a pod needs room under limits and under PodDisruptionBudgets. One that is refused by one takes nothing of the
// other.
func TestTheStricterDecides(t *testing.T) {
	a, b, c := pod("a"), pod("b"), pod("c")
	c.Namespace, c.Labels = "other", nil
	for name, test := range map[string]struct {
		limit, budget int
		want, others  []string
	}{
		"both allow one":    {1, 1, []string{"a"}, nil},
		"the limit refuses": {0, 1, nil, nil},
		"the budget does":   {1, 0, nil, []string{"c"}},
		"the limit is more": {2, 1, []string{"a"}, []string{"c"}},
	} {
		_, broker := budgeted(test.budget, a, b)
		broker.Limits = concurrency.Limits{{Flag: concurrency.FlagTotal, Most: test.limit}}
		taken, _ := reserve(t, broker, workload("one", a, b), taking(a, b))
		others, _ := reserve(t, broker, workload("two", c), taking(c))
		if !slices.Equal(taken, test.want) || !slices.Equal(others, test.others) {
			t.Errorf("%s: %v and %v are taken, want %v and %v", name, taken, others, test.want, test.others)
		}
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

// RestartingPods implements reader.
func (l *lagging) RestartingPods(ctx context.Context) ([]*corev1.Pod, error) {
	defer l.then()
	return l.shop.RestartingPods(ctx)
}

// NamespacePods implements reader.
func (l *lagging) NamespacePods(ctx context.Context, in string) ([]*corev1.Pod, error) {
	defer l.then()
	return l.shop.NamespacePods(ctx, in)
}

// VersionOf implements reader.
func (l *lagging) VersionOf(ctx context.Context, key types.NamespacedName, uid types.UID) (string, error) {
	defer l.then()
	return l.shop.VersionOf(ctx, key, uid)
}

// TestAWriteThatAppearsMeanwhileCounts: a pod counts also if the cache shows what was written to it while pods are counted.
func TestAWriteThatAppearsMeanwhileCounts(t *testing.T) {
	a, b := pod("a"), pod("b")
	cached := &shop{pods: []*corev1.Pod{a, b}}
	under, broker := budgeted(1, a, b)
	for cluster, broker := range map[*shop]*Broker{cached: limited(1, cached), under: broker} {
		_, settle := reserve(t, broker, workload("one", a), taking(a))
		settle(written(a, takenOut(a, "2")))
		broker.Cached = &lagging{cluster, func() { cluster.show(takenOut(a, "2")) }}
		if second, _ := reserve(t, broker, workload("two", b), taking(b)); len(second) > 0 {
			t.Errorf("%v are taken besides", second)
		}
	}
}

// TestADoubtfulWriteStillCounts: a write that may have been made, although its answer was an error, counts also after a second one was
// refused as too old.
func TestADoubtfulWriteStillCounts(t *testing.T) {
	a, b := pod("a"), pod("b")
	_, broker := budgeted(1, a, b)
	for _, broker := range []*Broker{limited(1, &shop{pods: []*corev1.Pod{a, b}}), broker} {
		for _, done := range []write.Outcome{{Err: fixture.ErrText("timeout")}, {Outdated: true}} {
			_, settle := reserve(t, broker, workload("one", a), taking(a))
			settle(done)
		}
		if second, _ := reserve(t, broker, workload("two", b), taking(b)); len(second) > 0 {
			t.Errorf("%v are taken besides", second)
		}
	}
}

// TestAPodThatIsGoneCountsNoMore: it is deleted while it is written.
func TestAPodThatIsGoneCountsNoMore(t *testing.T) {
	a, b := pod("a"), pod("b")
	cached := &shop{pods: []*corev1.Pod{a, b}}
	broker := limited(1, cached)
	_, settle := reserve(t, broker, workload("one", a), taking(a))
	cached.pods = []*corev1.Pod{b}
	if err := broker.See(t.Context(), workload("two", b)); err != nil {
		t.Fatal(err)
	}
	settle(write.Outcome{Err: fixture.ErrText("timeout")})
	if second, _ := reserve(t, broker, workload("two", b), taking(b)); len(second) != 1 || len(broker.reserved) != 1 {
		t.Errorf("%v are taken, %d reserved", second, len(broker.reserved))
	}
}

// seen is the snapshot of a workload with what the Broker says about it.
func seen(t *testing.T, b *Broker, rollout engine.Rollout) *engine.Snapshot {
	t.Helper()
	if err := b.See(t.Context(), rollout); err != nil {
		t.Fatal(err)
	}
	return rollout.Snapshot()
}

// TestPlansKnowWhatIsReserved checks that a plan counts the pods that another workload takes, and that nothing is read about
// PodDisruptionBudgets if it does not ask for them.
func TestPlansKnowWhatIsReserved(t *testing.T) {
	a, b := pod("a"), pod("b")
	_, broker := budgeted(1, a, b)
	broker.Limits = concurrency.Limits{{Flag: concurrency.FlagTotal, Most: 1}}
	reserve(t, broker, workload("one", a), taking(a))
	got := seen(t, broker, workload("two", b))
	if of := got.Disruption; !of.Taken["a"] || of.Taken["b"] || len(of.Pods) != 2 || len(of.Budgets) != 1 {
		t.Errorf("the plan sees %+v", of)
	}
	if wait := got.Share.Wait(b, nil, time.Now()); wait == nil || wait.For != concurrency.FlagTotal {
		t.Errorf("the plan sees room under the limit: %+v", wait)
	}
	_, broker = budgeted(0, a, b)
	ignoring := workload("three", b)
	ignoring.Snapshot().Settings.DisruptionBudgets = false
	if got := seen(t, broker, ignoring); got.Disruption.Budgets != nil || got.Share != nil {
		t.Errorf("a plan that ignores them sees %+v", got.Disruption)
	}
	if taken, _ := reserve(t, broker, ignoring, taking(b)); len(taken) != 1 {
		t.Errorf("%v are taken", taken)
	}
}

// TestNothingIsTakenUncounted: if pods or PodDisruptionBudgets cannot be read, or a leader is new, only other steps are
// carried out.
func TestNothingIsTakenUncounted(t *testing.T) {
	a, away := pod("a"), &shop{err: fixture.ErrText("away")}
	_, unread := budgeted(1, a)
	unread.Live = away
	young := limited(1, &shop{pods: []*corev1.Pod{a}})
	_, counting := budgeted(1, a)
	young.since, counting.since = time.Now(), time.Now()
	todo := append(taking(a), steps.SetReady{Pod: a}, steps.PatchPod{Pod: a, Stops: true},
		steps.PatchPod{Pod: a, Stops: true, Drained: true})
	for name, test := range map[string]struct {
		b    *Broker
		kept int
	}{
		"no PodDisruptionBudgets": {unread, 2}, "no pods": {limited(1, away), 2}, "new": {young, 2}, "new, with budgets": {counting, 2},
		"neither limits nor PodDisruptionBudgets": {nil, 4},
	} {
		kept, settle, all := test.b.Reserve(t.Context(), workload("one", a), todo)
		settle(write.Outcome{})
		if len(kept) != test.kept || all != (test.kept == len(todo)) {
			t.Errorf("%s: %d steps are kept, all: %t", name, len(kept), all)
		}
	}
	unready := takenOut(a, "1")
	if taken, _ := reserve(t, young, workload("one", unready), taking(unready)); len(taken) != 1 {
		t.Error("a pod that does not serve waits for a new leader")
	}
}

// TestTheAPIServerHasTheLastWord: an eviction that the cache does not show yet has taken the allowance.
func TestTheAPIServerHasTheLastWord(t *testing.T) {
	a, b := pod("a"), pod("b")
	cached := &shop{budgets: allowing(1, []*corev1.Pod{a, b}), pods: []*corev1.Pod{a, b}}
	evicted := allowing(1, []*corev1.Pod{a, b})
	evicted[0].Status.DisruptionsAllowed, evicted[0].Status.DisruptedPods = 0, map[string]metav1.Time{"b": {}}
	for name, live := range map[string]*shop{
		"evicted":               {budgets: evicted, pods: cached.pods},
		"deleted, not shown":    {budgets: allowing(1, []*corev1.Pod{a}), pods: []*corev1.Pod{a}},
		"edited, not shown yet": {budgets: allowing(2, []*corev1.Pod{a, b}), pods: cached.pods},
	} {
		broker := &Broker{Cached: cached, Live: live}
		if taken, _ := reserve(t, broker, workload("one", a), taking(a)); len(taken) > 0 {
			t.Errorf("%s: %v are taken", name, taken)
		}
	}
}

// TestAPlanOlderThanTheCache: a pod that was taken counts as taken although the plan of its workload is older, and the cache shows it
// already. The status of the PodDisruptionBudget does not show it yet.
func TestAPlanOlderThanTheCache(t *testing.T) {
	a, b := pod("a"), pod("b")
	for name, pods := range map[string][]*corev1.Pod{"taken": {takenOut(a, "2"), b}, "gone": {b}} {
		cluster := &shop{budgets: allowing(1, []*corev1.Pod{a, b}), pods: pods}
		broker := &Broker{Cached: cluster, Live: cluster}
		if got := seen(t, broker, workload("one", a, b)); len(got.Disruption.Pods) != len(pods) {
			t.Errorf("%s: the plan counts %d pods", name, len(got.Disruption.Pods))
		}
		if taken, _ := reserve(t, broker, workload("one", a, b), taking(b)); len(taken) > 0 {
			t.Errorf("%s: %v are taken", name, taken)
		}
	}
}
