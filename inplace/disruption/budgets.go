package disruption

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// Seen is what was observed of a namespace. The zero Seen has no PodDisruptionBudgets, and so allows everything.
type Seen struct {
	// Budgets are the PodDisruptionBudgets of the namespace.
	Budgets []*policyv1.PodDisruptionBudget
	// Pods are the pods of the namespace, of whatever workload.
	Pods []*corev1.Pod
	// Taken are the pods that were just taken out of service although Pods need not show it yet. Neither need the status of a
	// PodDisruptionBudget.
	Taken map[types.UID]bool
}

// Budgets are the PodDisruptionBudgets that select pods of one workload. They count the pods that a plan takes.
type Budgets struct {
	all   budgets
	taken map[types.UID]bool
}

type budgets []*budget

// budget is one PodDisruptionBudget.
type budget struct {
	*policyv1.PodDisruptionBudget
	selector labels.Selector
	// selected and healthy count the live pods that it selects. Taken counts those of the healthy ones that are taken, and those that the plan
	// takes. Doubtful are those that are Ready but not healthy, so that the disruption controller may count them.
	selected, healthy, taken, doubtful int
}

// Of returns the PodDisruptionBudgets that select some of the pods. If they are too many to be counted, it returns one that selects all
// pods and allows no disruption.
func (s Seen) Of(pods []*corev1.Pod, now time.Time) Budgets {
	if len(s.Budgets) > MostBudgets {
		return tooMany(fmt.Sprintf("its namespace has more than %d PodDisruptionBudgets", MostBudgets))
	}
	var found budgets
	for _, of := range s.Budgets {
		if one := (&budget{PodDisruptionBudget: of, selector: selectorOf(of)}); slices.ContainsFunc(pods, one.selects) {
			found = append(found, one)
		}
		if len(found) > mostOfOne {
			return tooMany(fmt.Sprintf("more than %d PodDisruptionBudgets select the pods of one workload", mostOfOne))
		}
	}
	for _, pod := range s.Pods {
		s.count(found.selecting(pod), pod, now)
	}
	return Budgets{found, s.Taken}
}

// tooMany returns a PodDisruptionBudget that selects every pod and allows no disruption.
func tooMany(why string) Budgets {
	of := &policyv1.PodDisruptionBudget{}
	of.Name = "(all)"
	uncountable(of, why)
	return Budgets{all: budgets{{PodDisruptionBudget: of, selector: labels.Everything()}}}
}

// selecting returns those that select the pod.
func (b budgets) selecting(pod *corev1.Pod) budgets {
	var those budgets
	for _, one := range b {
		if one.selects(pod) {
			those = append(those, one)
		}
	}
	return those
}

// selectorOf returns the selector. One that is not valid selects no pod: getPodDisruptionBudgets in eviction.go.
func selectorOf(of *policyv1.PodDisruptionBudget) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(of.Spec.Selector)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

func (b *budget) selects(pod *corev1.Pod) bool {
	return b.selector.Matches(labels.Set(pod.Labels))
}

// count counts the pod in the PodDisruptionBudgets that select it.
func (s Seen) count(selecting budgets, pod *corev1.Pod, now time.Time) {
	if len(selecting) == 0 || !readiness.Live(pod) {
		return
	}
	healthy := healthy(pod, now)
	for _, one := range selecting {
		one.selected++
		switch _, evicted := one.Status.DisruptedPods[pod.Name]; {
		case evicted || !apps.IsTrue(pod, corev1.PodReady):
		case !healthy:
			one.doubtful++
		case s.Taken[pod.UID]:
			one.healthy++
			one.taken++
		default:
			one.healthy++
		}
	}
}

// healthy reports whether the pod, which is Ready, stays so as far as Stayput is concerned. A pod that was patched is healthy when its new
// containers run, however long its Ready is still that of the old ones.
func healthy(pod *corev1.Pod, now time.Time) bool {
	out, _ := readiness.TakenOut(pod, now)
	started, _ := readiness.ProvedStarted(pod, now)
	return !out && started
}

// Wait returns why the pod may not be taken out of service now; nil if it may, or is taken already. The events of the pods that a
// PodDisruptionBudget counts start no look where they are those of another workload, and some pods count as healthy as soon as enough time
// has passed. So it asks for another look.
func (b Budgets) Wait(pod *corev1.Pod, _ *corev1.Node, now time.Time) *steps.Wait {
	needs, counted := b.needsAllowance(pod, now)
	if !needs {
		return nil
	}
	for _, one := range b.all {
		if why := one.refuses(pod, counted); why != "" {
			return &steps.Wait{Filter: steps.FilterBudget, Pod: pod, For: one.Name, Again: inplace.LookAgain, Shared: true,
				Why: fmt.Sprintf("PodDisruptionBudget %s, which allows no disruption: %s", one.Name, why)}
		}
	}
	return nil
}

// Reserve counts the pod as taken out of service.
func (b Budgets) Reserve(pod *corev1.Pod, _ *corev1.Node, now time.Time) {
	if needs, counted := b.needsAllowance(pod, now); needs {
		for _, one := range b.all.selecting(pod) {
			one.taken += counted
		}
	}
}

// needsAllowance reports whether the pod serves, and is not taken already. Counted is how many healthy pods it counts as: none if a
// startup probe may revoke its Ready. An eviction may be granted on such a Ready, too.
func (b Budgets) needsAllowance(pod *corev1.Pod, now time.Time) (needs bool, counted int) {
	if out, _ := readiness.TakenOut(pod, now); out || !readiness.Live(pod) || !apps.IsTrue(pod, corev1.PodReady) || b.taken[pod.UID] {
		return false, 0
	}
	if healthy(pod, now) {
		counted = 1
	}
	return true, counted
}

// refuses returns why the pod may not be taken out of service now; empty if it may, or is none of those that the budget selects. A pod that
// does not count as healthy is one of the doubtful ones, which are taken off already.
func (b *budget) refuses(pod *corev1.Pod, counted int) string {
	switch {
	case !b.selects(pod) || b.surplus(pod):
		return ""
	case b.Status.ObservedGeneration < b.Generation:
		return "the disruption controller has yet to see its last change"
	case b.failed() != "":
		return "the disruption controller cannot count its pods: " + b.failed()
	case b.healthy-b.taken-counted < int(b.Status.DesiredHealthy):
		return fmt.Sprintf("%d of %d required pods are healthy", b.healthy-b.taken, b.Status.DesiredHealthy)
	case int(b.Status.DisruptionsAllowed)-b.taken-b.doubtful-counted < 0:
		return fmt.Sprintf("the disruption controller has counted %d of %d required pods as healthy", b.Status.CurrentHealthy,
			b.Status.DesiredHealthy)
	}
	return ""
}

// surplus reports whether the pod is a surge pod that goes in any case: every pod that the budget selects is healthy, so what remains is
// what the workloads ask for. If the budget asks for more, waiting would have no end.
func (b *budget) surplus(pod *corev1.Pod) bool {
	return pod.Annotations[inplace.AnnotationSurgePod] != "" && b.healthy-b.taken == b.selected && b.selected <= int(b.Status.DesiredHealthy)
}

// failed returns why the disruption controller could not count; empty if it could.
func (b *budget) failed() string {
	allowed := apimeta.FindStatusCondition(b.Status.Conditions, policyv1.DisruptionAllowedCondition)
	if allowed == nil || allowed.Status != metav1.ConditionFalse || allowed.Reason != policyv1.SyncFailedReason {
		return ""
	}
	return allowed.Message
}
