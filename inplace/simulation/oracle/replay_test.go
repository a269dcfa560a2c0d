package simulation

import (
	"slices"
	"testing"

	"github.com/stayput/stayput/inplace/internal/fixture"
)

// TestSeedsReplay: the same happens each time that a seed runs, so that a failure can be looked at.
func TestSeedsReplay(t *testing.T) {
	for kind, run := range map[string]func(t *testing.T, seed int64) []string{
		"Deployment":  func(t *testing.T, seed int64) []string { return simulate(t, seed, true).trace },
		"DaemonSet":   func(t *testing.T, seed int64) []string { return simulateDaemons(t, seed, true).trace },
		"StatefulSet": traceOfEnsemble,
	} {
		t.Run(kind, func(t *testing.T) {
			for seed := range int64(20) {
				var traces [2][]string
				for i := range traces {
					within(t, func() { traces[i] = run(t, seed) })
				}
				if !slices.Equal(traces[0], traces[1]) {
					t.Errorf("seed %d: %s", seed, differing(traces[0], traces[1]))
				}
			}
		})
	}
}

// traceOfEnsemble returns what happens when a StatefulSet gets another image.
func traceOfEnsemble(t *testing.T, seed int64) []string {
	e := newEnsemble(t, uint64(seed))
	e.Edit(fixture.App{Image: "v2"})
	for range 300 {
		e.act()
	}
	return e.traces
}

// differing returns the first lines in which two traces differ.
func differing(a, b []string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[i] + "\nand then\n" + b[i]
		}
	}
	return "one is longer"
}
