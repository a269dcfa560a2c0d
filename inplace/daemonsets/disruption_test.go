package daemonsets_test

import (
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/steps"
)

// TestBudgetsAreRespected: pods restart as the PodDisruptionBudget allows. One that it keeps does not keep pods of another one.
func TestBudgetsAreRespected(t *testing.T) {
	leader := func(f *fixture.Fleet) { // the PodDisruptionBudget selects the first pod only
		f.Seen.Pods[0].Labels["role"] = "leader"
		budget := fixture.Requiring(1, 1)
		budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"role": "leader"}}
		f.Seen.Disruption.Budgets = []*policyv1.PodDisruptionBudget{budget}
	}
	unready := func(f *fixture.Fleet) { fixture.Unready(f.Seen.Pods[1]) }
	for name, test := range map[string]struct {
		required, counted int32
		change            func(*fixture.Fleet)
		want              []string
		phase             steps.Phase
	}{
		"two may go":                {1, 3, nil, []string{"out p1", "out p2"}, steps.PhaseUpdating},
		"one may go":                {2, 3, nil, []string{"out p1"}, steps.PhaseUpdating},
		"none may go":               {3, 3, nil, nil, steps.PhaseBudget},
		"not Ready":                 {3, 2, unready, []string{"out p2"}, steps.PhaseUpdating},
		"one of two budgets allows": {0, 0, leader, []string{"out p2", "out p3"}, steps.PhaseUpdating},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixture.NewFleet(t, 3, fixture.MaxUnavailable("2"))
			f.Edit(fixture.App{Image: "v2"})
			f.Once() // writes the mark
			f.Expect("mark 2 true false")
			f.Seen.Disruption = fixture.Protected(test.required, test.counted, f.Seen.Pods)
			if test.change != nil {
				test.change(f)
			}
			plan := f.Once()
			f.Expect(test.want...)
			if plan.Phase != test.phase || (test.phase == steps.PhaseBudget) != strings.HasSuffix(plan.Message,
				"waiting for PodDisruptionBudget web, which allows no disruption: 3 of 3 required pods are healthy") {
				t.Errorf("%s %q, want %s", plan.Phase, plan.Message, test.phase)
			}
		})
	}
}
