package statefulsets_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/concurrency"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// TestBudgetsAreRespected: pods restart as the PodDisruptionBudget allows, the highest ordinal first, with both pod management policies.
func TestBudgetsAreRespected(t *testing.T) {
	restarting := func(pod *corev1.Pod) { // of another workload
		pod.Annotations = map[string]string{inplace.AnnotationMove: `{"hash":"2","containers":{"app":{"image":"v2","containerID":"db-0/app"}}}`}
	}
	for name, test := range map[string]struct {
		required, counted int32
		beside            func(*corev1.Pod)
		change            func(*fixture.Members)
		ordered, parallel []string
		waits             string
	}{
		"two may go": {required: 1, counted: 3, ordered: []string{"db-2", "db-1"}, parallel: []string{"db-2", "db-1"}},
		"one may go": {required: 2, counted: 3, ordered: []string{"db-2"}, parallel: []string{"db-2"},
			waits: "2 of 2 required pods are healthy"},
		"none may go":             {required: 3, counted: 3, waits: "3 of 3 required pods are healthy"},
		"one of another restarts": {required: 3, counted: 4, beside: restarting, waits: "3 of 3 required pods are healthy"},
		"the highest is not Ready": {required: 3, counted: 2, change: func(m *fixture.Members) { fixture.Unready(m.Member(2)) },
			parallel: []string{"db-2"}, waits: "2 of 3 required pods are healthy"},
	} {
		for policy, want := range map[string][]string{"OrderedReady": test.ordered, "Parallel": test.parallel} {
			t.Run(name+", "+policy, func(t *testing.T) {
				m := fixture.NewMembers(t, 3, fixture.Rolling(0, "2"))
				if policy == "Parallel" {
					fixture.Parallel(m)
				}
				m.Edit(fixture.App{Image: "v2"})
				m.Once() // writes the mark
				if test.change != nil {
					test.change(m)
				}
				pods := slices.Clone(m.Fleet.Seen.Pods)
				if test.beside != nil {
					pods = append(pods, m.Member(0).DeepCopy())
					test.beside(pods[3])
				}
				m.Rollout.Seen.Disruption = fixture.Protected(test.required, test.counted, pods)
				plan := m.Of().Plan()
				if got := disrupted(plan.Steps); !slices.Equal(got, want) {
					t.Errorf("%v are taken, want %v: %s", got, want, plan.Message)
				}
				if policy == "Parallel" && !strings.Contains(plan.Message, test.waits) {
					t.Errorf("it says %s %q, want %q", plan.Phase, plan.Message, test.waits)
				}
			})
		}
	}
}

func disrupted(planned []steps.Step) (names []string) {
	for _, step := range planned {
		if pod := steps.Disrupted(step); pod != nil {
			names = append(names, pod.Name)
		}
	}
	return names
}

// TestLowerOrdinalsWait: a PodDisruptionBudget that keeps only the highest ordinal keeps the lower ones as well, since those come later.
func TestLowerOrdinalsWait(t *testing.T) {
	m := fixture.NewMembers(t, 3, fixture.Rolling(0, "2"))
	m.Edit(fixture.App{Image: "v2"})
	m.Once()
	m.Member(2).Labels["role"] = "leader"
	budget := fixture.Requiring(1, 1)
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"role": "leader"}}
	m.Rollout.Seen.Disruption.Budgets, m.Rollout.Seen.Disruption.Pods = []*policyv1.PodDisruptionBudget{budget}, m.Fleet.Seen.Pods
	if plan := m.Of().Plan(); len(disrupted(plan.Steps)) > 0 || plan.Phase != steps.PhaseBudget {
		t.Errorf("%v are taken: %s %s", disrupted(plan.Steps), plan.Phase, plan.Message)
	}
}

// TestBadPodsNeedNoAllowance: two pods have begun when the template is edited again. The higher one serves, and may not restart. The lower
// one has a bad image: it goes on all the same, or no pod would ever become healthy that the PodDisruptionBudget requires.
func TestBadPodsNeedNoAllowance(t *testing.T) {
	for name, change := range map[string]func(*fixture.Members){"OrderedReady": func(*fixture.Members) {}, "Parallel": fixture.Parallel} {
		m := fixture.NewMembers(t, 3, fixture.Rolling(0, "2"), change)
		m.Edit(fixture.App{Image: "bad"})
		second := m.Of().UpdateRevision().Name
		m.Edit(fixture.App{Image: "v3"})
		m.Once()                                                          // writes the mark
		for ordinal, revision := range []string{"db-1", second, "db-1"} { // as before any pod got v3
			m.Member(ordinal).Labels[inplace.LabelRevisionHash] = revision
			m.Member(ordinal).Spec.Containers[0].Image = map[string]string{"db-1": "v1", second: "bad"}[revision]
		}
		fixture.Unready(m.Member(1))
		partial(m.Member(2), "db-1")
		partial(m.Member(1), second)
		m.Rollout.Seen.Disruption = fixture.Protected(2, 2, m.Fleet.Seen.Pods)
		if plan := m.Of().Plan(); !slices.Equal(disrupted(plan.Steps), []string{"db-1"}) {
			t.Errorf("%s: %v are taken, want db-1: %s", name, disrupted(plan.Steps), plan.Message)
		}
	}
}

// partial makes the pod one that was patched on its way to the revision, and that runs what it was patched to.
func partial(pod *corev1.Pod, revision string) {
	pod.Labels[inplace.LabelRevisionHash] = podstate.HashPartial
	pod.Annotations = map[string]string{inplace.AnnotationMove: readiness.Move{Hash: revision}.String()}
}

// TestLabelsNeedNoAllowance: a pod in which nothing restarts gets its labels whatever a PodDisruptionBudget says.
func TestLabelsNeedNoAllowance(t *testing.T) {
	m := fixture.NewMembers(t, 2)
	m.Edit(fixture.App{Image: "v1", Chart: "2"})
	m.Rollout.Seen.Disruption = fixture.Protected(2, 2, m.Fleet.Seen.Pods)
	m.Rest()
	m.Expect("mark 2 true false", "db-1 is db-2 app=v1", "db-0 is db-2 app=v1", "mark 2 false false")
}

// TestAClosedWindowKeepsMembers: no member begins before the window opens, although the label partition says nothing of a StatefulSet.
func TestAClosedWindowKeepsMembers(t *testing.T) {
	for policy, change := range map[string]func(*fixture.Members){"OrderedReady": func(*fixture.Members) {}, "Parallel": fixture.Parallel} {
		m := fixture.NewMembers(t, 3, fixture.Rolling(0, "2"), change)
		m.Edit(fixture.App{Image: "v2"})
		m.Once()
		rollout := m.Of()
		rollout.Seen.Settings = rollout.Seen.Settings.During("never", rollout.Seen.Now)
		if plan := rollout.Plan(); len(disrupted(plan.Steps)) > 0 || !plan.Decision.Held {
			t.Errorf("%s: %v are taken: %s %s", policy, disrupted(plan.Steps), plan.Phase, plan.Message)
		}
		rollout = m.Of()
		rollout.Seen.Settings = rollout.Seen.Settings.During("always", rollout.Seen.Now)
		if plan := rollout.Plan(); len(disrupted(plan.Steps)) == 0 {
			t.Errorf("%s: none is taken while it is open: %s %s", policy, plan.Phase, plan.Message)
		}
	}
}

// TestLimitsKeepTheOrder: a limit that keeps the highest ordinal keeps the lower ones as well.
func TestLimitsKeepTheOrder(t *testing.T) {
	m := fixture.NewMembers(t, 3, fixture.Rolling(0, "2"))
	m.Edit(fixture.App{Image: "v2"})
	m.Once()
	highest := m.Member(2).Spec.NodeName
	rollout := m.Of()
	rollout.Seen.Share = concurrency.Limits{{Flag: concurrency.FlagPerNode, Most: 1}}.Share(concurrency.Pod{UID: "other", Node: highest})
	if plan := rollout.Plan(); len(disrupted(plan.Steps)) > 0 || plan.Phase != steps.PhaseLimit || len(plan.WaitsFor(steps.FilterLimit)) != 1 {
		t.Errorf("%v are taken: %s %s, %d wait", disrupted(plan.Steps), plan.Phase, plan.Message, len(plan.WaitsFor(steps.FilterLimit)))
	}
}
