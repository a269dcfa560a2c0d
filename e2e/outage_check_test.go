package e2e

import (
	"slices"
	"testing"
	"time"
)

// second returns a moment.
func second(n int64) time.Time { return time.Unix(n, 0) }

func TestOutagesOfAMember(t *testing.T) {
	var requests []asked
	for n, answered := range []bool{true, false, false, false, true, true, false, true} {
		requests = append(requests, asked{at: second(int64(n)), answered: answered})
	}
	want := []outage{{1, second(1), second(3)}, {1, second(6), second(6)}}
	if got := outagesOf(1, requests); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestFewestServing(t *testing.T) {
	for name, c := range map[string]struct {
		outages []outage
		want    int
	}{
		"none":                         {nil, 3},
		"one after another":            {[]outage{{2, second(1), second(3)}, {1, second(4), second(5)}}, 2},
		"one member twice":             {[]outage{{2, second(1), second(3)}, {2, second(4), second(5)}}, 2},
		"two at a time":                {[]outage{{2, second(1), second(4)}, {1, second(4), second(5)}}, 1},
		"one within another":           {[]outage{{2, second(1), second(9)}, {1, second(4), second(5)}}, 1},
		"all at a time, in this order": {[]outage{{0, second(5), second(9)}, {2, second(1), second(9)}, {1, second(4), second(5)}}, 0},
	} {
		if got := fewestServing(3, c.outages); got != c.want {
			t.Errorf("%s: %d serve at the worst moment, want %d", name, got, c.want)
		}
	}
}
