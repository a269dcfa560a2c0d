package steps_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/steps"
)

func TestTogether(t *testing.T) {
	open, closes, status, move := steps.SetGate{Open: true}, steps.SetGate{}, steps.PatchStatus{}, steps.PatchPod{}
	d := steps.PlanBuilder{}
	for _, step := range []steps.Step{closes, move, open, closes, steps.PatchReplicaSet{}, status, open} {
		d.Step(step)
	}
	d.Arrange()
	var sizes []int
	for _, lot := range steps.Lots(d.Result.Steps) {
		sizes = append(sizes, len(lot))
	}
	if !slices.Equal(sizes, []int{2, 1, 2, 2}) {
		t.Errorf("lots of %v steps, not gates that open, the status, the others, and gates that close", sizes)
	}
	if steps.Lots(nil) != nil {
		t.Error("no steps are some lots")
	}
}

// TestOrderOfSteps: a step that fails must not keep the others from being carried out, above all not a gate from
// opening.
func TestOrderOfSteps(t *testing.T) {
	r := fixture.Updating()
	r.Seen.Settings = inplace.Settings{}
	fixture.PodOf(r, "a3", r.ReplicaSets[0], fixture.Drained)
	fixture.PodOf(r, "b3", r.ReplicaSets[1],
		func(pod *corev1.Pod) { fixture.ConditionIs(inplace.ConditionServing, corev1.ConditionFalse)(pod) })
	r.Deployment.Status.ReadyReplicas = 0
	ranks := map[string]int{"steps.SetGate true": 0, "steps.PatchStatus": 1, "steps.SetGate false": 3}
	last := 0
	for _, step := range r.Plan().Steps {
		kind := fmt.Sprintf("%T", step)
		if gate, is := step.(steps.SetGate); is {
			kind += fmt.Sprint(" ", gate.Open)
		}
		rank, known := ranks[kind]
		if !known {
			rank = 2
		}
		if rank < last {
			t.Errorf("%s comes late", step.Describe())
		}
		last = rank
	}
	if last == 0 {
		t.Error("there was nothing to put in order")
	}
}
