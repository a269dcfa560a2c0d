//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const budgetsSetting = "stayput.dev/disruption-budgets"

// respectful asks for PodDisruptionBudgets.
var respectful = with(stateful, budgetsSetting, "respect")

// budgets checks that updates in place take no more pods out of service than PodDisruptionBudgets allow. After every watch event as many
// pods are healthy as they require.
func budgets(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"two Deployments at once":        budgetOfTwo,
		"none allowed, deleted":          budgetForbids,
		"evictions while a pod has turn": evictedMeanwhile,
	})
	nightly(t, map[string]func(*testing.T){
		"a StatefulSet":          budgetOfStatefulSet,
		"a DaemonSet":            budgetOfDaemonSet,
		"evictions all the time": evictedAllTheTime,
	})
}

// protect creates a PodDisruptionBudget of these apps that requires so many healthy pods, and waits until the disruption controller has
// counted them. When the test ends, every event since then is checked; so many pods fewer may be healthy. It returns a function that
// deletes the PodDisruptionBudget.
func (s *scenario) protect(required, pods, spare int, apps ...string) (lift func()) {
	s.Helper()
	wanted := intstr.FromInt(required)
	selector := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: apps}}}
	created, err := clients.PolicyV1().PodDisruptionBudgets(s.namespace).Create(s.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "budget"}, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &wanted, Selector: selector},
	}, metav1.CreateOptions{})
	if err != nil {
		s.Fatalf("creating a PodDisruptionBudget: %v", err)
	}
	s.eventually("the disruption controller to have counted", func(ctx context.Context) error {
		status, err := s.budget(ctx)
		if err == nil && (status.ObservedGeneration == 0 || int(status.CurrentHealthy) != pods || int(status.DesiredHealthy) != required) {
			err = fmt.Errorf("it has counted %+v", status)
		}
		return err
	})
	matches, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		s.Fatal(err)
	}
	since, until := versionOf(created.ResourceVersion), uint64(math.MaxUint64)
	s.Cleanup(func() { s.staysHealthy(matches, required-spare, since, until) })
	return func() {
		s.Helper()
		all := clients.PolicyV1().PodDisruptionBudgets(s.namespace)
		listed, err := all.List(s.Context(), metav1.ListOptions{})
		if err == nil {
			until = versionOf(listed.ResourceVersion)
			err = all.Delete(s.Context(), "budget", metav1.DeleteOptions{})
		}
		if err != nil {
			s.Fatalf("deleting the PodDisruptionBudget: %v", err)
		}
	}
}

// budget returns the status of the PodDisruptionBudget.
func (s *scenario) budget(ctx context.Context) (policyv1.PodDisruptionBudgetStatus, error) {
	found, err := clients.PolicyV1().PodDisruptionBudgets(s.namespace).Get(ctx, "budget", metav1.GetOptions{})
	if err != nil {
		return policyv1.PodDisruptionBudgetStatus{}, err
	}
	return found.Status, nil
}

// staysHealthy replays the events, and checks that after each one between those versions so many of the selected pods were healthy, as the
// disruption controller counts them.
func (s *scenario) staysHealthy(selector labels.Selector, required int, since, until uint64) {
	w, before := newWorld(), required
	for _, e := range s.recorder.inOrder() {
		w.apply(e)
		if e.version <= since || e.version > until {
			continue
		}
		healthy := 0
		for _, pod := range w.pods {
			ready := conditionOf(pod, corev1.PodReady)
			if selector.Matches(labels.Set(pod.Labels)) && pod.DeletionTimestamp == nil && ready != nil && ready.Status == corev1.ConditionTrue {
				healthy++
			}
		}
		if healthy < required && healthy < before {
			s.Errorf("%d pods are healthy after version %d of %s, and %d are required", healthy, e.version, e.object.GetName(), required)
		}
		before = healthy
	}
}

// awaitsBudget waits until an event on the workload says that its update waits for the PodDisruptionBudget.
func (s *scenario) awaitsBudget(name string, required int) {
	s.Helper()
	s.tells(name, "waiting for PodDisruptionBudget budget, which allows no disruption",
		fmt.Sprintf("of %d required pods are healthy", required))
}

func budgetOfStatefulSet(t *testing.T) {
	s := newStatefulScenario(t, respectful)
	s.form(db(3))
	s.protect(2, 3, 0, "db")
	s.inPlace(members, once, func() { s.setImage(members, "app=v2") })
	s.inOrdinalOrder("v2")
}

// budgetOfDaemonSet: all pods may be unavailable, and the PodDisruptionBudget allows one disruption.
func budgetOfDaemonSet(t *testing.T) {
	s := newScenario(t, respectful)
	all := intstr.FromString("100%")
	s.install(agent(func(ds *appsv1.DaemonSet) {
		ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &all}}
	}))
	pods := len(s.pods(agents))
	s.protect(pods-1, pods, 0, "agent")
	s.inPlace(agents, once, func() { s.setImage(agents, "app=v2") })
	s.runs(agents, "v2")
}

// budgetOfTwo edits two Deployments under one PodDisruptionBudget at the same moment. It allows one disruption.
func budgetOfTwo(t *testing.T) {
	s := newScenario(t, respectful)
	s.create(web(3, rolling("2", "0")), web(3, named("worker"), rolling("2", "0")))
	s.protect(5, 6, 0, "web", "worker")
	web, worker := s.pods("web"), s.pods("worker")
	s.begin("in place", inPlace)
	s.setImage("web", "app=v2")
	s.setImage("worker", "app=v2")
	s.completes("web")
	s.completes("worker")
	s.kept("web", web, once)
	s.kept("worker", worker, once)
}

// budgetForbids: an update that no PodDisruptionBudget allows waits and says why, at the edit, too. When the PodDisruptionBudget is deleted
// it goes on.
func budgetForbids(t *testing.T) {
	s := newScenario(t, respectful)
	s.create(web(2, progressDeadline(20)))
	lift := s.protect(2, 2, 0, "web")
	before := s.pods("web")
	s.begin("waiting", inPlace)
	s.expectIn(s.setImage("web", "app=v2"), "PodDisruptionBudget budget: it requires 2 healthy pods of 2, so the update waits")
	s.awaitsBudget("web", 2)
	s.answers("", 0, []string{"PodDisruptionBudget budget, which allows no disruption: 2 of 2 required pods are healthy"},
		"status", "deployment/web")
	s.wait("the status to say why", on("web", func(_ world, d *appsv1.Deployment) error {
		for _, c := range d.Status.Conditions {
			if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse {
				return says(c.Message, "waiting for PodDisruptionBudget budget")
			}
		}
		return errors.New("the deadline has not passed")
	}))
	s.kept("web", before, nil)
	lift()
	s.completes("web")
	s.kept("web", before, once)
}

// evict asks the API server to evict the pod, as kubectl drain does. It reports whether the API server has granted it.
func (s *scenario) evict(pod *corev1.Pod) bool {
	s.Helper()
	err := clients.CoreV1().Pods(s.namespace).EvictV1(s.Context(), &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: s.namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &pod.ResourceVersion}}})
	if err != nil && !apierrors.IsTooManyRequests(err) && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		s.Fatalf("evicting %s: %v", pod.Name, err)
	}
	return err == nil
}

// oldPod returns a pod that the update has not reached; nil if there is none.
func (s *scenario) oldPod() *corev1.Pod {
	for _, pod := range s.pods("web") {
		if imagesOf(pod.Spec)["app"] == appImage("v1") && !isOut(pod) {
			return pod
		}
	}
	return nil
}

// evictedMeanwhile: while a pod restarts for the update, the API server refuses evictions.
func evictedMeanwhile(t *testing.T) {
	s := newScenario(t, respectful)
	s.create(web(3, readyAfter("app", "15s")))
	s.protect(2, 3, 0, "web")
	s.inPlace("web", once, func() {
		s.setImage("web", "app=v2")
		s.eventually("a pod to be counted as taken", func(ctx context.Context) error {
			status, err := s.budget(ctx)
			if err == nil && status.DisruptionsAllowed > 0 {
				err = fmt.Errorf("%d disruptions are allowed", status.DisruptionsAllowed)
			}
			return err
		})
		for _, pod := range s.pods("web") {
			if ready := conditionOf(pod, corev1.PodReady); ready.Status == corev1.ConditionTrue && s.evict(pod) {
				t.Errorf("pod %s is evicted while another one restarts", pod.Name)
			}
		}
	})
}

// evictedAllTheTime evicts pods that the update has not reached until there is none, as often as the API server grants it. One that is
// granted in the moment in which a pod is taken out of service may come on top: docs/explanation/limits.md.
func evictedAllTheTime(t *testing.T) {
	s := newScenario(t, respectful)
	s.create(web(4, rolling("2", "0")))
	s.protect(3, 4, 1, "web")
	s.begin("evicted", Rules{Created: anyNumber, Deleted: anyNumber, Outage: true})
	s.setImage("web", "app=v2")
	granted := 0
	for old := s.oldPod(); old != nil; old = s.oldPod() {
		if s.evict(old) {
			granted++
		}
	}
	t.Logf("%d evictions are granted", granted)
	s.completes("web")
	s.runs("web", "v2")
}
