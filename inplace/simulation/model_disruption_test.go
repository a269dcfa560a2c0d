package simulation

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/disruption"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// startDisruption starts the controller of PodDisruptionBudgets anew.
var startDisruption = func(w *world) { w.disruptionController = &disruptionController{w, w.pods.informer()} }

// disruptionController counts the pods of PodDisruptionBudgets: trySync in pkg/controller/disruption/disruption.go. Its cache of pods lags.
type disruptionController struct {
	*world
	pods *informer[*corev1.Pod]
}

func (c *disruptionController) deliver(watch, n int) {
	if watch == 2 {
		c.pods.advance(n)
	}
}

func (c *disruptionController) resync() {}

// protect creates a PodDisruptionBudget of all pods. It requires so many healthy ones.
func (w *world) protect(required int) {
	put(w, w.budgets, fixture.Requiring(int32(required), 0))
	startDisruption(w)
	w.disruptionController.run()
	w.logf("a PodDisruptionBudget requires %d", required)
}

// require changes how many healthy pods the PodDisruptionBudget requires.
func (w *world) require(required int) {
	change := func(b *policyv1.PodDisruptionBudget) {
		b.Generation, b.Spec.MinAvailable = b.Generation+1, new(intstr.FromInt(required))
	}
	if _, err := alter(w, w.budgets, "web", "", change); err != nil {
		w.violated("require: %v", err)
	}
	w.disruptionController.deliver(0, 1)
	w.disruptionController.run()
	w.logf("the PodDisruptionBudget requires %d", required)
}

// requiring edits how many healthy pods a PodDisruptionBudget requires.
func requiring(required int) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) {
		b.Generation++
		b.Spec.MinAvailable = new(intstr.FromInt(required))
	}
}

func (c *disruptionController) run() {
	current := c.budgets.objects["web"]
	next := synced(current, c.pods.list(), c.now)
	if !equality.Semantic.DeepEqual(current.Status, next.Status) {
		put(c.world, c.budgets, next)
		c.logf("disruption controller: %d healthy, %d allowed", next.Status.CurrentHealthy, next.Status.DisruptionsAllowed)
	}
}

// synced returns the PodDisruptionBudget with the status that follows from those pods.
func synced(current *policyv1.PodDisruptionBudget, pods []*corev1.Pod, now time.Time) *policyv1.PodDisruptionBudget {
	next := current.DeepCopy()
	status := &next.Status
	status.ObservedGeneration, status.DesiredHealthy = current.Generation, current.Spec.MinAvailable.IntVal
	status.DisruptedPods, status.CurrentHealthy, status.ExpectedPods = nil, 0, 0
	for _, pod := range pods {
		status.ExpectedPods++
		at, evicted := current.Status.DisruptedPods[pod.Name]
		switch {
		case pod.DeletionTimestamp != nil:
		case evicted && at.Add(evictionLasts).After(now):
			status.DisruptedPods = map[string]metav1.Time{pod.Name: at}
		case apps.IsTrue(pod, corev1.PodReady):
			status.CurrentHealthy++
		}
	}
	status.DisruptionsAllowed = max(0, status.CurrentHealthy-status.DesiredHealthy)
	return next
}

// evictionLasts is DeletionTimeout.
const evictionLasts = 2 * time.Minute

// evict asks for the eviction of some pod: checkAndDecrement in pkg/registry/core/pod/storage/eviction.go.
func (w *world) evict() {
	known := sorted(w.pods.objects)
	if len(known) == 0 {
		return
	}
	name := known[w.rng.Intn(len(known))].Name
	pod, budget := w.pods.objects[name], w.budgets.objects["web"]
	if pod == nil || !readiness.Live(pod) || budget.Status.DisruptionsAllowed == 0 || len(budget.Status.DisruptedPods) > 0 {
		return
	}
	next := budget.DeepCopy()
	next.Status.DisruptionsAllowed--
	next.Status.DisruptedPods = map[string]metav1.Time{name: metav1.NewTime(w.now)}
	put(w, w.budgets, next)
	w.logf("%s is evicted", name)
	w.rules.disturbed, w.rules.deleted = true, true
	if err := w.terminate(name); err != nil {
		w.violated("evict: %v", err)
	}
}

// tickBudgets makes one random event of the PodDisruptionBudget happen, if there is one.
func (w *world) tickBudgets() {
	if w.disruptionController == nil {
		return
	}
	switch w.rng.Intn(60) {
	case 0, 1, 2, 3, 4, 5, 6, 7:
		w.disruptionController.deliver(2, 1+w.rng.Intn(4))
		w.disruptionController.deliver(0, 1)
	case 8, 9, 10, 11, 12, 13:
		w.disruptionController.run()
	case 14, 15, 16, 17:
		w.stayput.stale = len(w.stayput.budgets.advance(1+w.rng.Intn(2))) > 0 || w.stayput.stale
	case 18:
		if w.rng.Intn(8) == 0 {
			w.evict()
		}
	case 19:
		if w.rng.Intn(4) == 0 {
			w.require(w.rng.Intn(len(w.pods.objects) + 1))
		}
	}
}

// runBudgets delivers all events of the PodDisruptionBudget.
func (w *world) runBudgets() {
	if w.disruptionController == nil {
		return
	}
	w.disruptionController.deliver(2, 100)
	w.disruptionController.deliver(0, 100)
	w.disruptionController.run()
	w.stayput.stale = len(w.stayput.budgets.advance(100)) > 0 || w.stayput.stale
}

// disruption returns what Stayput sees of those PodDisruptionBudgets.
func (s *stayput) disruption(budgets []*policyv1.PodDisruptionBudget) disruption.Seen {
	if s.disruptionController == nil {
		return disruption.Seen{}
	}
	return disruption.Seen{Budgets: budgets, Pods: s.pods.list(), Taken: s.taken}
}

// allowed asks the API server's PodDisruptionBudget before a step that takes a pod out of service, as controller/allowance does.
func (s *stayput) allowed(step steps.Step) bool {
	pod := steps.Disrupted(step)
	if pod == nil {
		return true
	}
	seen := s.disruption(sorted(s.world.budgets.objects))
	if refused := seen.Of(seen.Pods, s.now).Wait(pod, nil, s.now); refused != nil {
		s.logf("stayput: not now: %s: %s", step.Describe(), refused)
		return false
	}
	s.taken[pod.UID] = true
	return true
}

// disrupts demands that as many pods stay healthy as the PodDisruptionBudget requires when a step takes one out of service. Of a pod that
// fails, or that another client deletes, no cache may know yet.
func (j *invariants) disrupts(w *world, step steps.Step) {
	pod := steps.Disrupted(step)
	if w.disruptionController == nil || pod == nil || j.loose || j.surprised {
		return
	}
	current, budget := w.pods.objects[pod.Name], w.budgets.objects["web"]
	if current == nil || current.ResourceVersion != pod.ResourceVersion || !j.healthy(w, current) {
		return
	}
	left := -1
	for _, each := range w.pods.objects {
		if j.healthy(w, each) {
			left++
		}
	}
	if left < int(budget.Status.DesiredHealthy) {
		w.violated("%s leaves %d healthy pods, %d required: %s", step.Describe(), left, budget.Status.DesiredHealthy, w.healths())
	}
}

// healthy reports whether the pod serves, and no step takes it out of service.
func (j *invariants) healthy(w *world, pod *corev1.Pod) bool {
	_, evicted := w.budgets.objects["web"].Status.DisruptedPods[pod.Name]
	return readiness.Live(pod) && !evicted && apps.IsTrue(pod, corev1.PodReady) && !readiness.Out(pod) && !j.out[pod.Name]
}

func (w *world) healths() string {
	text := ""
	for _, pod := range sorted(w.pods.objects) {
		text += fmt.Sprintf("%s healthy %t, ", pod.Name, w.rules.healthy(w, pod))
	}
	return text
}
