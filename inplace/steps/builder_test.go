package steps_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/steps"
)

func TestTogether(t *testing.T) {
	back, out, status, move := steps.SetReady{}, steps.SetReady{Out: true}, steps.PatchStatus{}, steps.PatchPod{}
	d := steps.PlanBuilder{}
	for _, step := range []steps.Step{out, move, back, out, steps.PatchReplicaSet{}, status, back} {
		d.Step(step)
	}
	d.Arrange()
	var sizes []int
	for _, lot := range steps.Lots(d.Result.Steps) {
		sizes = append(sizes, len(lot))
	}
	if !slices.Equal(sizes, []int{2, 1, 2, 2}) {
		t.Errorf("lots of %v steps, not pods that come back, the status, the others, and pods that are taken out", sizes)
	}
	if steps.Lots(nil) != nil {
		t.Error("no steps are some lots")
	}
}

// TestOrderOfSteps: a step that fails must not keep the others from being carried out, above all not a pod from coming back.
func TestOrderOfSteps(t *testing.T) {
	r := fixture.Updating()
	r.Seen.Settings = inplace.Settings{}
	fixture.PodOf(r, "a3", r.ReplicaSets[0], fixture.Out)
	fixture.PodOf(r, "b3", r.ReplicaSets[1], fixture.Out)
	r.Deployment.Status.ReadyReplicas = 0
	ranks := map[string]int{"steps.SetReady false": 0, "steps.PatchStatus": 1, "steps.SetReady true": 3}
	last := 0
	for _, step := range r.Plan().Steps {
		kind := fmt.Sprintf("%T", step)
		if ready, is := step.(steps.SetReady); is {
			kind += fmt.Sprint(" ", ready.Out)
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
