package simulation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/disruption"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// protection is a PodDisruptionBudget of an ensemble's pods, and of a pod of another workload that is ready and not ready by turns. The
// disruption controller counts pods in a cache that lags. So does Stayput's cache of the PodDisruptionBudget.
type protection struct {
	*ensemble
	stored, cached *policyv1.PodDisruptionBudget
	counted        []*corev1.Pod
	other          *corev1.Pod
	wrong          string
}

// protect creates the PodDisruptionBudget. It requires so many healthy pods.
func (e *ensemble) protect(required int) *protection {
	other := e.Member(e.first).DeepCopy()
	other.Name, other.UID = "other-0", "other-0"
	p := &protection{ensemble: e, stored: fixture.Requiring(int32(required), 0), other: other}
	p.count()
	p.cached = p.stored
	e.protection = p
	e.others = append(e.others, p.act)
	e.trace("a PodDisruptionBudget requires %d", required)
	return p
}

func (p *protection) pods() []*corev1.Pod {
	return append([]*corev1.Pod{p.other}, p.Fleet.Seen.Pods...)
}

// act lets the disruption controller, Stayput's watch, or another client act.
func (p *protection) act() {
	switch p.random.IntN(40) {
	case 0:
		p.evict()
	case 1:
		p.require(p.random.IntN(len(p.pods()) + 1))
	case 2, 3:
		p.turn(!apps.IsTrue(p.other, corev1.PodReady))
	case 4, 5, 6, 7, 8, 9, 10, 11, 12:
		p.cached = p.stored
	case 13, 14, 15, 16, 17, 18:
		p.run()
	case 19, 20, 21, 22, 23, 24, 25, 26:
		p.count()
	}
}

// count updates the disruption controller's cache.
func (p *protection) count() {
	p.counted = nil
	for _, pod := range p.pods() {
		p.counted = append(p.counted, pod.DeepCopy())
	}
}

// run is trySync in pkg/controller/disruption/disruption.go.
func (p *protection) run() { p.stored = synced(p.stored, p.counted, p.Fleet.Seen.Now) }

// require changes how many healthy pods the PodDisruptionBudget requires. The disruption controller knows it at once.
func (p *protection) require(required int) {
	p.stored = p.stored.DeepCopy()
	requiring(required)(p.stored)
	p.run()
	p.trace("the PodDisruptionBudget requires %d", required)
}

// turn makes the other workload's pod ready or not ready.
func (p *protection) turn(ready bool) {
	status := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[ready]
	fixture.ConditionIs(corev1.PodReady, status)(p.other)
	p.trace("the other pod is ready: %t", ready)
}

// evict asks for the eviction of some pod: checkAndDecrement in pkg/registry/core/pod/storage/eviction.go.
func (p *protection) evict() {
	pods := p.Fleet.Seen.Pods
	if len(pods) == 0 {
		return
	}
	pod := pods[p.random.IntN(len(pods))]
	if !readiness.Live(pod) || p.stored.Status.DisruptionsAllowed == 0 || len(p.stored.Status.DisruptedPods) > 0 {
		return
	}
	p.stored = p.stored.DeepCopy()
	p.stored.Status.DisruptionsAllowed--
	p.stored.Status.DisruptedPods = map[string]metav1.Time{pod.Name: metav1.NewTime(p.Fleet.Seen.Now)}
	p.trace("%s is evicted", pod.Name)
	p.remove(pod)
}

// cache returns what Stayput plans on.
func (p *protection) cache() disruption.Seen {
	if p == nil {
		return disruption.Seen{}
	}
	return disruption.Seen{Budgets: []*policyv1.PodDisruptionBudget{p.cached}, Pods: p.pods()}
}

// allows asks the API server's PodDisruptionBudget before a step that takes a pod out of service, as controller/allowance does. It notes
// whether such a step leaves fewer healthy pods than required.
func (p *protection) allows(step steps.Step) bool {
	pod := steps.Disrupted(step)
	if p == nil || pod == nil {
		return true
	}
	live := disruption.Seen{Budgets: []*policyv1.PodDisruptionBudget{p.stored}, Pods: p.pods()}
	if refused := live.Of(p.Fleet.Seen.Pods, p.Fleet.Seen.Now).Wait(pod, nil, p.Fleet.Seen.Now); refused != nil {
		p.trace("not now: %s: %s", step.Describe(), refused)
		return false
	}
	left := -1
	for _, each := range p.pods() {
		if p.serves(each) {
			left++
		}
	}
	if required := int(p.stored.Status.DesiredHealthy); p.serves(pod) && left < required {
		p.wrong = fmt.Sprintf("%s leaves %d healthy pods, %d required", step.Describe(), left, required)
	}
	return true
}

// serves reports whether the pod is Ready, and neither evicted nor about to restart.
func (p *protection) serves(pod *corev1.Pod) bool {
	_, evicted := p.stored.Status.DisruptedPods[pod.Name]
	runs := pod == p.other || fixture.SaidOf(pod, "app").Image == pod.Spec.Containers[0].Image
	return healthy(pod) && !evicted && !readiness.Out(pod) && runs
}

// calm ends all that others do, and allows one disruption.
func (p *protection) calm() {
	p.turn(true)
	p.others = []func(){func() {
		p.count()
		p.run()
		p.cached = p.stored
	}}
	p.require(p.StatefulSet.Replicas())
}

// comesToRest lets them act until Stayput has nothing left to do.
func (e *ensemble) comesToRest(most int) string {
	for range most {
		e.Rollout.Seen.Disruption = e.protection.cache()
		if plan := e.Of().Plan(); len(plan.Steps) == 0 && plan.After == 0 {
			return ""
		}
		e.act()
	}
	return "Stayput never comes to rest"
}
