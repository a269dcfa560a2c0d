package allowance

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/controller/kinds"
	"github.com/stayput/stayput/controller/write"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
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
	s.lock.Lock()
	defer s.lock.Unlock()
	return slices.Clone(s.pods), s.err
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

// workload returns the rollout of a Deployment with these pods that asks for PodDisruptionBudgets.
func workload(name string, pods ...*corev1.Pod) kinds.Rollout {
	return kinds.Deployment{Rollout: &deployments.Rollout{
		Deployment: &apps.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}},
		Seen:       engine.Snapshot{Pods: pods, Settings: inplace.Settings{DisruptionBudgets: true}}}}
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

// confirm returns the names of the pods that may be taken.
func confirm(t *testing.T, r *Room, rollout kinds.Rollout, todo []steps.Step) ([]string, func(write.Outcome)) {
	t.Helper()
	kept, settle, confirmed := r.Confirm(t.Context(), rollout, todo)
	if confirmed != (len(kept) == len(todo)) {
		t.Errorf("%d of %d steps are kept, confirmed: %t", len(kept), len(todo), confirmed)
	}
	var names []string
	for _, step := range kept {
		names = append(names, steps.Disrupted(step).Name)
	}
	return names, settle
}

// TestTheLastAllowanceIsGivenOnce plans two workloads under one PodDisruptionBudget at the same moment. One of them waits, until the pod of
// the other is Ready again; what became of the write meanwhile decides how long.
func TestTheLastAllowanceIsGivenOnce(t *testing.T) {
	a, b := pod("a"), pod("b")
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
		"not written yet":       {},
		"written, not shown":    {settled: takes},
		"written and shown":     {settled: takes, shown: func(a *corev1.Pod) *corev1.Pod { return takenOut(a, "2") }},
		"written and back":      {settled: takes, shown: back, free: true},
		"refused, as too old":   {settled: func(*corev1.Pod) write.Outcome { return write.Outcome{Outdated: true} }, free: true},
		"perhaps written":       {settled: func(*corev1.Pod) write.Outcome { return write.Outcome{Err: fixture.ErrText("timeout")} }},
		"an old version, again": {settled: takes, shown: func(a *corev1.Pod) *corev1.Pod { return a }},
	} {
		cluster := &shop{budgets: allowing(1, []*corev1.Pod{a, b}), pods: []*corev1.Pod{a, b}}
		room := &Room{Cached: cluster, Live: cluster}
		taken, settle := confirm(t, room, workload("one", a), taking(a))
		if !slices.Equal(taken, []string{"a"}) {
			t.Fatalf("%s: %v are taken first", name, taken)
		}
		if test.settled != nil {
			settle(test.settled(a))
		}
		if test.shown != nil {
			cluster.show(test.shown(a))
		}
		if taken, _ := confirm(t, room, workload("two", b), taking(b)); (len(taken) == 1) != test.free {
			t.Errorf("%s: then %v are taken, want b: %t", name, taken, test.free)
		}
	}
}

// TestWorkersShareAllowances has many workers take pods of one PodDisruptionBudget at once.
func TestWorkersShareAllowances(t *testing.T) {
	const workloads, allowed = 40, 7
	var pods []*corev1.Pod
	for i := range workloads {
		pods = append(pods, pod(fmt.Sprint("p", i)))
	}
	cluster := &shop{budgets: allowing(workloads-allowed, pods), pods: pods}
	room, taken, all := &Room{Cached: cluster, Live: cluster}, make([]int, workloads), sync.WaitGroup{}
	for i, each := range pods {
		all.Go(func() {
			kept, settle, _ := room.Confirm(t.Context(), workload(each.Name, each), taking(each))
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
		t.Errorf("%d pods are taken, want %d", sum, allowed)
	}
}

// TestPlansKnowWhatIsTaken checks that a plan counts the pods that another workload takes, and that nothing is read if it does not ask.
func TestPlansKnowWhatIsTaken(t *testing.T) {
	a, b := pod("a"), pod("b")
	cluster := &shop{budgets: allowing(1, []*corev1.Pod{a, b}), pods: []*corev1.Pod{a, b}}
	room := &Room{Cached: cluster, Live: cluster}
	confirm(t, room, workload("one", a), taking(a))
	seen, err := room.Seen(t.Context(), workload("two", b))
	if err != nil || !seen.Taken["a"] || seen.Taken["b"] || len(seen.Pods) != 2 || len(seen.Budgets) != 1 {
		t.Errorf("the plan sees %+v, %v", seen, err)
	}
	ignoring := workload("three", b)
	ignoring.Snapshot().Settings.DisruptionBudgets = false
	if seen, err := room.Seen(t.Context(), ignoring); err != nil || seen.Budgets != nil {
		t.Errorf("a plan that ignores them sees %+v, %v", seen, err)
	}
	if kept, _, confirmed := room.Confirm(t.Context(), ignoring, taking(b)); !confirmed || len(kept) != 1 {
		t.Errorf("%d steps are kept", len(kept))
	}
}

// TestNothingIsTakenUnread: if the PodDisruptionBudgets cannot be read, only other steps are carried out.
func TestNothingIsTakenUnread(t *testing.T) {
	a := pod("a")
	cluster := &shop{budgets: allowing(0, []*corev1.Pod{a}), pods: []*corev1.Pod{a}}
	room := &Room{Cached: cluster, Live: &shop{err: fixture.ErrText("away")}}
	todo := append(taking(a), steps.SetReady{Pod: a}, steps.PatchPod{Pod: a, Stops: true},
		steps.PatchPod{Pod: a, Stops: true, Drained: true})
	kept, settle, confirmed := room.Confirm(t.Context(), workload("one", a), todo)
	settle(write.Outcome{})
	if confirmed || len(kept) != 2 {
		t.Errorf("%d steps are kept, confirmed: %t", len(kept), confirmed)
	}
}

// TestTheAPIServerHasTheLastWord: an eviction that the cache does not show yet has taken the allowance, and so has the leader before this
// one, whose last write the cache does not show either.
func TestTheAPIServerHasTheLastWord(t *testing.T) {
	a, b := pod("a"), pod("b")
	cached := &shop{budgets: allowing(1, []*corev1.Pod{a, b}), pods: []*corev1.Pod{a, b}}
	evicted := allowing(1, []*corev1.Pod{a, b})
	evicted[0].Status.DisruptionsAllowed, evicted[0].Status.DisruptedPods = 0, map[string]metav1.Time{"b": {}}
	for name, live := range map[string]*shop{
		"evicted":               {budgets: evicted, pods: cached.pods},
		"taken by a leader":     {budgets: cached.budgets, pods: []*corev1.Pod{a, takenOut(b, "2")}},
		"deleted, not shown":    {budgets: allowing(1, []*corev1.Pod{a}), pods: []*corev1.Pod{a}},
		"edited, not shown yet": {budgets: allowing(2, []*corev1.Pod{a, b}), pods: cached.pods},
	} {
		room := &Room{Cached: cached, Live: live}
		if taken, _ := confirm(t, room, workload("one", a), taking(a)); len(taken) > 0 {
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
		room := &Room{Cached: cluster, Live: cluster}
		if seen, err := room.Seen(t.Context(), workload("one", a, b)); err != nil || len(seen.Pods) != len(pods) {
			t.Errorf("%s: the plan counts %d pods, %v", name, len(seen.Pods), err)
		}
		if taken, _ := confirm(t, room, workload("one", a, b), taking(b)); len(taken) > 0 {
			t.Errorf("%s: %v are taken", name, taken)
		}
	}
}

// TestADoubtfulWriteStaysTaken: a write that may have been made, although its answer was an error, counts also after a second one was
// refused as too old.
func TestADoubtfulWriteStaysTaken(t *testing.T) {
	a, b := pod("a"), pod("b")
	cluster := &shop{budgets: allowing(1, []*corev1.Pod{a, b}), pods: []*corev1.Pod{a, b}}
	room := &Room{Cached: cluster, Live: cluster}
	for _, done := range []write.Outcome{{Err: fixture.ErrText("timeout")}, {Outdated: true}} {
		_, settle := confirm(t, room, workload("one", a), taking(a))
		settle(done)
	}
	if taken, _ := confirm(t, room, workload("two", b), taking(b)); len(taken) > 0 {
		t.Errorf("%v are taken besides", taken)
	}
}
