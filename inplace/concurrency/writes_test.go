package concurrency

import (
	"fmt"
	"testing"
	"time"
)

// finish has that many writes of a kind begin together when the round began, and take that long.
func (w *Writes) finish(count int, kind string, long time.Duration, others bool) {
	began := w.since
	for range count {
		w.Took(kind, began, began.Add(long), others)
	}
}

// knows returns Writes with that bound, and how long the best patch took.
func knows(bound int, best time.Duration) Writes {
	return Writes{bound: bound, best: map[string]time.Duration{"patch": best}}
}

// TestWritesBound: rounds of as many writes as the bound says, which is eight at first. Each takes that long, and the best one before took
// 10 ms.
func TestWritesBound(t *testing.T) {
	const best = 10 * time.Millisecond
	for name, test := range map[string]struct {
		rounds int
		long   time.Duration
		others bool
		want   int
	}{
		"a round of quick writes":    {1, best, true, 9},
		"and two more":               {3, best, true, 11},
		"quick, and nothing waits":   {3, best, false, 8},
		"a round of slow writes":     {1, 4 * best, true, 5},
		"slow, and nothing waits":    {1, 4 * best, false, 5},
		"another one":                {2, 4 * best, true, 3},
		"never less than two":        {20, 4 * best, true, 2},
		"never more than MostWrites": {100, best, true, MostWrites},
		"slower for good":            {5000, 4 * best, true, MostWrites},
	} {
		w := knows(8, best)
		for range test.rounds {
			w.finish(w.Most(), "patch", test.long, test.others)
		}
		if got := w.Most(); got != test.want {
			t.Errorf("%s: %d writes, want %d", name, got, test.want)
		}
	}
}

// TestJustNotSlow: three times as long as the best one is not slow. The best time of each kind has grown a little by then.
func TestJustNotSlow(t *testing.T) {
	w, best := Writes{bound: 8, best: map[string]time.Duration{}}, 10*time.Millisecond
	for i := range 8 {
		kind := fmt.Sprint("kind ", i)
		w.best[kind] = best
		w.finish(1, kind, slow*time.Duration(forgets*float64(best)), true)
	}
	if got := w.Most(); got != 9 {
		t.Errorf("the bound is %d, want 9", got)
	}
}

// TestFirstWrites: a leader that has measured nothing begins with the fewest.
func TestFirstWrites(t *testing.T) {
	w := Writes{}
	for want := leastWrites; want <= 8; want++ {
		if got := w.Most(); got != want {
			t.Fatalf("the bound is %d, want %d", got, want)
		}
		w.finish(w.Most(), "patch", time.Second, true)
	}
}

// TestFewSlowWrites: half of a round may be slow.
func TestFewSlowWrites(t *testing.T) {
	for slow, want := range map[int]int{1: 9, 4: 9, 5: 5} {
		w := Writes{bound: 8}
		w.finish(8-slow, "patch", time.Millisecond, true)
		w.finish(slow, "patch", time.Second, true)
		if got := w.Most(); got != want {
			t.Errorf("%d of 8 writes are slow: the bound is %d, want %d", slow, got, want)
		}
	}
}

// TestKindsHaveTheirOwnBest: a create that takes longer than a patch is not slow.
func TestKindsHaveTheirOwnBest(t *testing.T) {
	w := Writes{bound: 8}
	w.finish(3, "patch", time.Millisecond, true)
	w.finish(5, "create", time.Second, true)
	if got := w.Most(); got != 9 {
		t.Errorf("the bound is %d, want 9", got)
	}
}

// TestOneFallForWritesSideBySide: what was in flight when the bound fell does not lower it again.
func TestOneFallForWritesSideBySide(t *testing.T) {
	w := knows(24, time.Millisecond)
	w.finish(3*24, "patch", time.Second, true)
	if got := w.Most(); got != 16 {
		t.Errorf("the bound is %d, want 16", got)
	}
}
