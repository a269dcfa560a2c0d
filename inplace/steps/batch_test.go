package steps_test

import (
	"testing"
	"time"

	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/steps"
)

func TestBatchesAreCountedFromTheFirst(t *testing.T) {
	batches := steps.Batches{steps.DeferMove: fixture.Start,
		steps.DeferStatus: fixture.Start}.Next(steps.Plan{Deferred: []steps.Deferral{steps.DeferStart,
		steps.DeferMove}}, fixture.Start.Add(steps.BatchWindow))
	if len(batches) != 2 || batches[steps.DeferMove] != fixture.Start || batches[steps.DeferStart] != fixture.Start.Add(steps.BatchWindow) {
		t.Errorf("since when something is put off: %v", batches)
	}
}

// TestCanWait: something waits for more of its kind for a batch window, from when it was due. It never waits where the caller does not
// remember since when: it would wait for ever.
func TestCanWait(t *testing.T) {
	since := func(ago time.Duration) steps.Batches { return steps.Batches{steps.DeferMove: fixture.Start.Add(-ago)} }
	for name, test := range map[string]struct {
		batches steps.Batches
		want    time.Duration
	}{
		"nothing is put off":     {nil, 0},
		"it is due now":          {steps.Batches{}, steps.BatchWindow},
		"it has waited":          {since(steps.BatchWindow - 1), 1},
		"it has waited for long": {since(steps.BatchWindow), 0},
		"another one has waited": {steps.Batches{steps.DeferStart: fixture.Start.Add(-time.Hour)}, steps.BatchWindow},
	} {
		d := steps.PlanBuilder{Batches: test.batches}
		if got := d.CanWait(steps.DeferMove, steps.BatchWindow, fixture.Start); got != test.want {
			t.Errorf("%s: it can wait for %s, want %s", name, got, test.want)
		}
	}
}
