package concurrency

import (
	"testing"
	"time"
)

// leader is a leader that makes so many steps a second. Pods are out of service for their own time, and longer if the leader is late.
type leader struct {
	steps float64
	own   time.Duration
}

// second has the leader work for a second with as many pods out of service as the bound allows, and returns for how long each is out.
func (l leader) second(load *Load, waiting int) time.Duration {
	out := min(load.Bound(), waiting)
	took := max(l.own, time.Duration(float64(out)*rounds/l.steps*float64(time.Second)))
	load.Waited("shop", (took-l.own)/rounds)
	load.Wrote(5 * time.Millisecond)
	load.CameBack(took)
	load.Tick(out, waiting > out)
	return took
}

// TestTheBoundFollowsTheLeader: after a minute pods are out of service for a little longer than by themselves, and the leader has enough to
// do. With fewer pods than the least bound it may be later.
func TestTheBoundFollowsTheLeader(t *testing.T) {
	for name, test := range map[string]struct {
		leader
		waiting     int
		least, most int
	}{
		"slow leader":              {leader{20, 2 * time.Second}, 600, leastBound, leastBound},
		"a leader in between":      {leader{60, 2 * time.Second}, 600, 30, 45},
		"quick leader":             {leader{400, 2 * time.Second}, 600, 200, 320},
		"pods that start slowly":   {leader{60, 30 * time.Second}, 900, 450, 760},
		"few pods":                 {leader{60, 2 * time.Second}, 10, firstBound, firstBound},
		"as many as may restart":   {leader{1000, 2 * time.Second}, firstBound, firstBound, firstBound},
		"more than there ever are": {leader{100000, time.Minute}, 1 << 20, mostBound, mostBound},
	} {
		load := &Load{}
		for range 60 {
			test.second(load, test.waiting)
		}
		for range 30 {
			test.second(load, test.waiting)
			if bound := load.Bound(); bound < test.least || bound > test.most {
				t.Fatalf("%s: the bound is %d, want %d to %d", name, bound, test.least, test.most)
			}
		}
	}
}

// TestTheBoundRecovers: when nothing is to do any more, the bound returns to where it began.
func TestTheBoundRecovers(t *testing.T) {
	for _, leader := range []leader{{20, 2 * time.Second}, {400, 2 * time.Second}} {
		load := &Load{}
		for range 60 {
			leader.second(load, 600)
		}
		for range 100 {
			load.Tick(0, false)
		}
		if bound := load.Bound(); bound != firstBound {
			t.Errorf("the bound is %d", bound)
		}
	}
}

func TestLate(t *testing.T) {
	second := func(all ...float64) (durations []time.Duration) {
		for _, one := range all {
			durations = append(durations, time.Duration(one*float64(time.Second)))
		}
		return durations
	}
	for name, test := range map[string]struct {
		waits  map[string][]time.Duration
		writes []time.Duration
		waited time.Duration
		slower time.Duration
	}{
		"nothing measured":                   {},
		"one namespace":                      {waits: map[string][]time.Duration{"a": second(1, 3)}, waited: 2 * time.Second},
		"each namespace has the same weight": {waits: map[string][]time.Duration{"a": second(3, 3, 3), "b": second(1)}, waited: 2 * time.Second},
		"writes take longer than at best":    {writes: second(0.1, 0.3), slower: 100 * time.Millisecond},
		"writes take less than at best":      {writes: second(0.05)},
	} {
		load := &Load{best: 100 * time.Millisecond}
		for namespace, waits := range test.waits {
			for _, long := range waits {
				load.Waited(namespace, long)
			}
		}
		for _, long := range test.writes {
			load.Wrote(long)
		}
		if waited, slower := load.waited(), load.slower().Round(time.Millisecond); waited != test.waited || slower != test.slower {
			t.Errorf("%s: waited %s, slower by %s", name, waited, slower)
		}
	}
}
