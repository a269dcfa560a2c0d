package steps_test

import (
	"testing"

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
