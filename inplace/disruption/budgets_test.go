package disruption

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/readiness"
)

var now = time.Unix(1_000_000, 0)

// pods returns pods of app web that are Ready.
func pods(count int) []*corev1.Pod {
	var all []*corev1.Pod
	for i := range count {
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name, pod.UID = "shop", fmt.Sprint("web-", i), types.UID(fmt.Sprint("web-", i))
		pod.Labels = map[string]string{"app": "web"}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		all = append(all, pod)
	}
	return all
}

// requiring returns a PodDisruptionBudget of app web of which the disruption controller has counted so many pods.
func requiring(desired, counted int32) *policyv1.PodDisruptionBudget {
	of := &policyv1.PodDisruptionBudget{}
	of.Namespace, of.Name, of.Generation = "shop", "web", 1
	of.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	of.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, CurrentHealthy: counted, DesiredHealthy: desired,
		DisruptionsAllowed: max(0, counted-desired), ExpectedPods: counted}
	return of
}

func out(pod *corev1.Pod) {
	pod.Status.Conditions[0] = readiness.TakenOutUntil(pod, now.Add(time.Minute), now)
}

func deleted(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{} }

func unready(pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse }

func restarting(pod *corev1.Pod) {
	pod.Annotations = map[string]string{inplace.AnnotationMove: `{"hash":"2","containers":{"app":{"image":"v2","containerID":"old"}}}`}
}

// unproved makes the pod one that was restarted just now, and is Ready although its startup probe has not answered yet.
func unproved(pod *corev1.Pod) {
	pod.Spec.Containers = []corev1.Container{{Name: "app", StartupProbe: &corev1.Probe{PeriodSeconds: 10}}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", RestartCount: 1,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}}}}
}

func surge(pod *corev1.Pod) { pod.Annotations = map[string]string{inplace.AnnotationSurgePod: "true"} }

// TestTake takes one pod after the other, until one is refused.
func TestTake(t *testing.T) {
	type change = func(*Seen)
	on := func(i int, does func(*corev1.Pod)) change { return func(s *Seen) { does(s.Pods[i]) } }
	status := func(does func(*policyv1.PodDisruptionBudget)) change { return func(s *Seen) { does(s.Budgets[0]) } }
	enough, all, stale := "2 of 2 required pods are healthy", "3 of 3 required pods are healthy",
		"the disruption controller has counted 2 of 2 required pods as healthy"
	for name, test := range map[string]struct {
		required, counted int32
		change            change
		// taken is how many of three pods are taken, why is why the next one is refused.
		taken int
		why   string
	}{
		"one may go":               {required: 2, counted: 3, taken: 1, why: enough},
		"two may go":               {required: 1, counted: 3, taken: 2, why: "1 of 1 required pods are healthy"},
		"all may go":               {required: 0, counted: 3, taken: 3},
		"none may go":              {required: 3, counted: 3, why: all},
		"more required than exist": {required: 5, counted: 3, why: "3 of 5 required pods are healthy"},

		"a pod is out, not counted yet": {required: 2, counted: 3, change: on(2, out), why: enough},
		"a pod restarts, still Ready":   {required: 2, counted: 3, change: on(2, restarting), why: enough},
		"the first restarts, and needs nothing": {required: 3, counted: 3, change: on(0, restarting), taken: 1,
			why: "2 of 3 required pods are healthy"},
		"a pod is not Ready, not counted yet":   {required: 2, counted: 3, change: on(2, unready), why: enough},
		"a pod is Ready again, not counted yet": {required: 2, counted: 2, why: stale},
		"the Ready of a pod is not proved":      {required: 2, counted: 3, change: on(2, unproved), why: enough},
		"the Ready of the first is not proved, and required": {required: 3, counted: 3, change: on(0, unproved),
			why: "2 of 3 required pods are healthy"},
		"the Ready of the first is not proved, and not required": {required: 2, counted: 3, change: on(0, unproved), taken: 1, why: enough},
		"the Ready of the first is not proved, not counted yet":  {required: 2, counted: 2, change: on(0, unproved), why: stale},
		"an eviction was granted on a Ready that is not proved": {required: 2, counted: 3, why: "1 of 2 required pods are healthy",
			change: func(s *Seen) {
				unproved(s.Pods[0])
				s.Budgets[0].Status.DisruptedPods = map[string]metav1.Time{"web-2": {}}
				s.Budgets[0].Status.DisruptionsAllowed = 0
			}},
		"a pod is deleted, not counted yet": {required: 2, counted: 3, why: enough, change: on(2, deleted)},
		"a pod is deleted, counted": {required: 1, counted: 2, taken: 1, change: on(2, deleted),
			why: "1 of 1 required pods are healthy"},
		"a pod was evicted, and is not deleted yet": {required: 2, counted: 3, why: enough, change: status(func(b *policyv1.PodDisruptionBudget) {
			b.Status.DisruptedPods = map[string]metav1.Time{"web-2": {}}
		})},
		"another worker takes a pod": {required: 2, counted: 3, why: enough, change: func(s *Seen) {
			s.Taken = map[types.UID]bool{"web-2": true}
		}},
		"an eviction is counted": {required: 2, counted: 2, change: on(2, unready), why: enough},

		"edited, not seen yet": {required: 0, counted: 3, change: status(func(b *policyv1.PodDisruptionBudget) { b.Generation++ }),
			why: "the disruption controller has yet to see its last change"},
		"not counted": {required: 0, counted: 3, why: "the disruption controller cannot count its pods: found no controllers for pod web-0",
			change: status(func(b *policyv1.PodDisruptionBudget) {
				b.Status.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse,
					Reason: policyv1.SyncFailedReason, Message: "found no controllers for pod web-0"}}
			})},

		"selects others": {required: 3, counted: 3, taken: 3, change: status(func(b *policyv1.PodDisruptionBudget) {
			b.Spec.Selector.MatchLabels["app"] = "db"
		})},
		"without a selector": {required: 3, counted: 3, taken: 3, change: status(func(b *policyv1.PodDisruptionBudget) {
			b.Spec.Selector = nil
		})},
		"selects every pod": {required: 3, counted: 3, why: all, change: status(func(b *policyv1.PodDisruptionBudget) {
			b.Spec.Selector.MatchLabels = nil
		})},
		"a selector that is not valid": {required: 3, counted: 3, taken: 3, change: status(func(b *policyv1.PodDisruptionBudget) {
			b.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "near"}}
		})},

		"none is Ready": {required: 3, counted: 0, taken: 3, change: func(s *Seen) {
			for _, pod := range s.Pods {
				unready(pod)
			}
		}},
		"a surge pod more than required": {required: 2, counted: 3, taken: 1, why: enough, change: on(0, surge)},
		"a surge pod, required":          {required: 3, counted: 3, taken: 1, why: "2 of 3 required pods are healthy", change: on(0, surge)},
		"a surge pod in place of an unready": {required: 3, counted: 2, change: func(s *Seen) { on(0, surge)(s); on(2, unready)(s) },
			why: "2 of 3 required pods are healthy"},
		"a surge pod beside an unready and a taken": {required: 3, counted: 2, why: "1 of 3 required pods are healthy", change: func(s *Seen) {
			on(0, surge)(s)
			on(2, unready)(s)
			s.Taken = map[types.UID]bool{"web-1": true}
		}},
	} {
		seen := Seen{Budgets: []*policyv1.PodDisruptionBudget{requiring(test.required, test.counted)}, Pods: pods(3)}
		if test.change != nil {
			test.change(&seen)
		}
		budgets, taken, refused := seen.Of(seen.Pods, now), 0, ""
		for _, pod := range seen.Pods {
			if refused = take(budgets, pod, now); refused != "" {
				break
			}
			taken++
		}
		if taken != test.taken || !strings.HasSuffix(refused, test.why) || (refused != "") != (test.why != "") {
			t.Errorf("%s: %d are taken, then %q; want %d, then %q", name, taken, refused, test.taken, test.why)
		}
	}
}

// TestEveryBudgetMustAllow checks that a pod that two PodDisruptionBudgets select needs the allowance of both, and that a refused pod takes
// none of either.
func TestEveryBudgetMustAllow(t *testing.T) {
	loose, strict := requiring(0, 3), requiring(3, 3)
	strict.Name = "strict"
	seen := Seen{Budgets: []*policyv1.PodDisruptionBudget{loose, strict}, Pods: pods(3)}
	strict.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"role": "leader"}}
	strict.Status.DesiredHealthy, strict.Status.DisruptionsAllowed = 1, 0
	seen.Pods[0].Labels["role"] = "leader"
	budgets := seen.Of(seen.Pods, now)
	want := "PodDisruptionBudget strict, which allows no disruption: 1 of 1 required pods are healthy"
	for i, want := range []string{want, "", "", want} {
		if refused := take(budgets, seen.Pods[i%3], now); refused != want {
			t.Errorf("pod %d: %q, want %q", i%3, refused, want)
		}
	}
}

// take takes the pod if it may be taken. If not, it returns what the pod waits for.
func take(b Budgets, pod *corev1.Pod, now time.Time) string {
	if wait := b.Wait(pod, nil, now); wait != nil {
		return wait.Why
	}
	b.Reserve(pod, nil, now)
	return ""
}

func TestNever(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*policyv1.PodDisruptionBudget)
		surge  int
		want   string
	}{
		"all are required, with surge": {surge: 1},
		"more are required than with surge pods": {surge: 1, want: "it requires 4 healthy pods of 3",
			change: func(b *policyv1.PodDisruptionBudget) { b.Status.DesiredHealthy = 4 }},
		"all are required": {want: "PodDisruptionBudget web: it requires 3 healthy pods of 3, so the"},
		"one may go":       {change: func(b *policyv1.PodDisruptionBudget) { b.Status.DesiredHealthy = 2 }},
		"none exist": {change: func(b *policyv1.PodDisruptionBudget) {
			b.Status.ExpectedPods, b.Status.DesiredHealthy = 0, 0
		}},
		"not seen yet": {change: func(b *policyv1.PodDisruptionBudget) { b.Generation++ }},
		"of others":    {change: func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector.MatchLabels["app"] = "db" }},
		"not counted": {want: "the disruption controller cannot count its pods (why)", change: func(b *policyv1.PodDisruptionBudget) {
			b.Status.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse,
				Reason: policyv1.SyncFailedReason, Message: "why"}}
		}},
	} {
		of := requiring(3, 3)
		if test.change != nil {
			test.change(of)
		}
		got := Never([]*policyv1.PodDisruptionBudget{of}, map[string]string{"app": "web"}, test.surge)
		if (got != "") != (test.want != "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestTooManyBudgetsAllowNothing(t *testing.T) {
	seen := Seen{Pods: pods(3)}
	for budgets, want := range map[int]string{
		1:               "",
		mostOfOne:       "",
		mostOfOne + 1:   "more than 20 PodDisruptionBudgets select the pods of one workload",
		MostBudgets:     "more than 20 PodDisruptionBudgets select the pods of one workload",
		MostBudgets + 1: "its namespace has more than 2000 PodDisruptionBudgets",
	} {
		for range budgets {
			seen.Budgets = append(seen.Budgets, requiring(1, 3))
		}
		refused := take(seen.Of(seen.Pods, now), seen.Pods[0], now)
		if want == "" && refused != "" || !strings.Contains(refused, want) {
			t.Errorf("with %d PodDisruptionBudgets a pod is refused with %q, want %q", budgets, refused, want)
		}
		seen.Budgets = nil
	}
}

// TestTrim: what is too large makes a PodDisruptionBudget select all pods and allow nothing.
func TestTrim(t *testing.T) {
	selecting := func(size int) func(*policyv1.PodDisruptionBudget) {
		return func(of *policyv1.PodDisruptionBudget) {
			for of.Spec.Selector.Size() < size {
				of.Spec.Selector.MatchLabels["app"] += "x"
			}
		}
	}
	evicting := func(pods int) func(*policyv1.PodDisruptionBudget) {
		return func(of *policyv1.PodDisruptionBudget) {
			of.Status.DisruptedPods = map[string]metav1.Time{}
			for i := range pods {
				of.Status.DisruptedPods[fmt.Sprint("web-", i)] = metav1.Time{}
			}
		}
	}
	for name, test := range map[string]struct {
		change func(*policyv1.PodDisruptionBudget)
		trims  bool
	}{
		"small":             {func(*policyv1.PodDisruptionBudget) {}, false},
		"longest selector":  {selecting(longestSelector), false},
		"longer selector":   {selecting(longestSelector + 1), true},
		"most evicted pods": {evicting(mostDisrupted), false},
		"more evicted pods": {evicting(mostDisrupted + 1), true},
	} {
		of := requiring(0, 3)
		test.change(of)
		selector, evicted := of.Spec.Selector.DeepCopy(), len(of.Status.DisruptedPods)
		if test.trims {
			selector, evicted = &metav1.LabelSelector{}, 0
		}
		Trim(of)
		if !equality.Semantic.DeepEqual(of.Spec.Selector, selector) || len(of.Status.DisruptedPods) != evicted {
			t.Errorf("%s: selector %v and %d evicted pods are kept", name, of.Spec.Selector, len(of.Status.DisruptedPods))
		}
		if failed := (&budget{PodDisruptionBudget: of}).failed(); (failed != "") != test.trims {
			t.Errorf("%s: it cannot be counted: %q", name, failed)
		}
	}
}

// TestTrimKeepsWhyItFailed, as far as a line of an event has room.
func TestTrimKeepsWhyItFailed(t *testing.T) {
	for length, kept := range map[int]int{0: 0, longestMessage: longestMessage, longestMessage + 1: longestMessage} {
		of := requiring(0, 3)
		of.Status.Conditions = []metav1.Condition{{Type: "Other"}, {Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse,
			Reason: policyv1.SyncFailedReason, Message: strings.Repeat("x", length)}}
		Trim(of)
		if got := len((&budget{PodDisruptionBudget: of}).failed()); got != kept || len(of.Status.Conditions) != 1 {
			t.Errorf("of %d characters %d are kept, in %d conditions", length, got, len(of.Status.Conditions))
		}
	}
}
