package steps

import (
	"slices"
	"testing"
)

// TestMayStart: only as many pods wait for a limit as the workload itself would let restart. Otherwise the workload would seem to need more
// of what all share. What else pods wait for is told of all of them.
func TestMayStart(t *testing.T) {
	for most, want := range map[int][]string{
		-1: {"window", "images"},
		0:  {"window", "images"},
		1:  {"window", "limit 1", "images"},
		2:  {"window", "limit 1", "images", "limit 2"},
		9:  {"window", "limit 1", "images", "limit 2", "limit 3"},
	} {
		var d PlanBuilder
		for _, wait := range []Wait{{Filter: "Window", Why: "window"}, {Filter: FilterLimit, Why: "limit 1"},
			{Filter: FilterImages, Why: "images"}, {Filter: FilterLimit, Why: "limit 2"}, {Filter: FilterLimit, Why: "limit 3"}} {
			d.Wait(wait)
		}
		d.MayStart(most)
		var got []string
		for _, wait := range d.Result.Waits {
			got = append(got, wait.Why)
		}
		if !slices.Equal(got, want) {
			t.Errorf("if %d may start, pods wait for %q, want %q", most, got, want)
		}
	}
}
