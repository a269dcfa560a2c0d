package e2e

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// aSecondEach returns events of pods, a second apart: + is Ready, - is not, x is deleted.
func aSecondEach(events ...string) []event {
	all, from := make([]event, 0, len(events)), time.Now()
	for i, e := range events {
		name, what := e[:len(e)-1], watch.Modified
		if e[len(e)-1] == 'x' {
			what = watch.Deleted
		}
		all = append(all, event{at: from.Add(time.Duration(i) * time.Second), what: what, object: aPod(name, "set", "v1", e[len(e)-1] == '+')})
	}
	return all
}

func TestUnreadyPodsAreCounted(t *testing.T) {
	for name, test := range map[string]struct {
		events                  []event
		unready, fewer, seconds float64
	}{
		"nothing happens":     {},
		"one after another":   {aSecondEach("a-", "a+", "b-", "b+"), 1, 1, 2},
		"both at once":        {aSecondEach("a-", "b-", "a+", "b+"), 2, 2, 4},
		"new ones come first": {aSecondEach("c-", "c+", "ax", "d-", "d+", "bx"), 1, 0, 2},
		"old ones go first":   {aSecondEach("ax", "c-", "c+", "bx", "d-", "d+"), 1, 1, 2},
	} {
		unready, fewer := worst(test.events, []types.UID{"a", "b"})
		seconds := 0.0
		for _, of := range notReady(test.events) {
			seconds += of
		}
		if unready != test.unready || fewer != test.fewer || seconds != test.seconds {
			t.Errorf("%s: %v not Ready and %v fewer for %v s, instead of %v, %v and %v", name, unready, fewer, seconds, test.unready, test.fewer,
				test.seconds)
		}
	}
}
