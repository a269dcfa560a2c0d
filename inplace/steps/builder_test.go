package steps_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/revisions"
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

// TestNextRenewal: the hold is renewed long before it expires, and not with every plan. A time in the future, as of another clock, does not
// keep the leader from renewing it.
func TestNextRenewal(t *testing.T) {
	at := func(ago time.Duration) string { return inplace.FormatTime(fixture.Start.Add(-ago)) }
	for name, test := range map[string]struct {
		marked, renewed string
		renews          bool
		again           time.Duration
	}{
		"just marked":                  {at(0), "", false, revisions.RenewEvery},
		"marked long ago":              {at(revisions.RenewEvery), "", true, revisions.RenewEvery},
		"just renewed":                 {at(time.Hour), at(time.Second), false, revisions.RenewEvery - time.Second},
		"almost due":                   {at(time.Hour), at(revisions.RenewEvery - time.Second), false, time.Second},
		"due":                          {at(time.Hour), at(revisions.RenewEvery), true, revisions.RenewEvery},
		"it has expired":               {at(time.Hour), at(revisions.HoldDuration), true, revisions.RenewEvery},
		"renewed by a clock far ahead": {at(time.Hour), at(-time.Hour), true, revisions.RenewEvery},
	} {
		labels, d := map[string]string{inplace.LabelUpdating: test.marked}, steps.PlanBuilder{}
		want := test.renewed
		if test.renews {
			want = at(0)
		}
		if test.renewed != "" {
			labels[inplace.LabelRenewed] = test.renewed
		}
		if got := d.NextRenewal(labels, fixture.Start); got != want || d.Result.After != test.again {
			t.Errorf("%s: it becomes %q, and the next look is after %s; want %q after %s", name, got, d.Result.After, want, test.again)
		}
	}
}
