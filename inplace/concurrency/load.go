package concurrency

import (
	"cmp"
	"time"
)

// Adaptive is the Flag of the limit that no flag sets: see Load.
const Adaptive = "adaptive"

const (
	// firstBound is the bound of a leader that has measured nothing, leastBound the lowest and mostBound the highest of all.
	firstBound, leastBound, mostBound = 32, 16, 1024
	// rounds is how many reconciles, each with a write, come one after the other while a pod is out of service: it is drained, it was patched,
	// its containers have restarted, it is Ready.
	rounds = 4
	// inTime is which part of the time that pods are out of service must be their own. The rest is that the leader is late.
	inTime = 0.75
	// forgets is how much slower the best write counts after each write, so that it is forgotten some time.
	forgets = 1.001
)

// Load derives how many pods of all workloads may be out of service at a time from how late the leader is. More pods than come back at once
// only wait out of service, and the leader and the API server get slower with each of them. The zero Load has measured nothing.
//
// By Little's law, pods that come back at a rate, each after some time, are rate x time pods out of service. If the leader is late, the
// rate is as high as it gets. Then the same rate needs only rate x the time that pods would be out if the leader were not late. So the
// bound goes there, in small steps, and rises as long as the leader is not late and pods wait.
type Load struct {
	// waits, writes and outs are what was measured since the last Tick. Waits are by namespace.
	waits        map[string]mean
	writes, outs mean
	// best is how long a write takes when the API server has nothing else to do.
	best time.Duration
	// late is by how much pods are out for longer because the leader is late, took for how long they are out.
	late, took float64
	bound      float64
}

type mean struct {
	sum   time.Duration
	count int
}

func (m mean) with(one time.Duration) mean { return mean{m.sum + one, m.count + 1} }

func (m mean) value() time.Duration { return m.sum / time.Duration(max(1, m.count)) }

// Waited notes how long a request of the namespace was due before a worker took it.
func (l *Load) Waited(namespace string, long time.Duration) {
	if l.waits == nil {
		l.waits = map[string]mean{}
	}
	l.waits[namespace] = l.waits[namespace].with(long)
}

// Wrote notes how long a write took.
func (l *Load) Wrote(long time.Duration) { l.writes = l.writes.with(long) }

// CameBack notes for how long a pod was out of service.
func (l *Load) CameBack(long time.Duration) { l.outs = l.outs.with(long) }

// Bound returns how many pods may be out of service at a time.
func (l *Load) Bound() int { return int(cmp.Or(l.bound, firstBound) + 0.5) }

// Tick moves the bound, once a second. Out is how many pods are out of service, more whether others wait for the bound.
func (l *Load) Tick(out int, more bool) {
	l.bound = cmp.Or(l.bound, firstBound)
	l.late += (rounds*float64(l.waited()+l.slower()) - l.late) / 4
	if l.outs.count > 0 {
		l.took = smooth(l.took, float64(l.outs.value()))
	}
	l.waits, l.writes, l.outs = nil, mean{}, mean{}
	switch own := l.own(); {
	case out == 0 && !more:
		l.bound += (firstBound - l.bound) / 16
	case own < inTime:
		want := max(leastBound, float64(out)*own/inTime)
		l.bound = min(l.bound, l.bound+(want-l.bound)/4)
	case more:
		l.bound = min(mostBound, l.bound*(1+own-inTime))
	}
}

// smooth returns a mean in which the new value has a quarter.
func smooth(before, now float64) float64 {
	if before == 0 {
		return now
	}
	return before + (now-before)/4
}

// own returns which part of the time that pods are out of service is their own.
func (l *Load) own() float64 {
	if l.took == 0 {
		return 1
	}
	return min(1, max(0.1, 1-l.late/l.took))
}

// waited returns how long requests were due. Each namespace has the same weight: one with a thousand requests waits for itself.
func (l *Load) waited() time.Duration {
	var all mean
	for _, one := range l.waits {
		all = all.with(one.value())
	}
	return all.value()
}

// slower returns by how much writes take longer than they would if the API server had nothing else to do.
func (l *Load) slower() time.Duration {
	if l.writes.count == 0 {
		return 0
	}
	now := l.writes.value()
	if best := time.Duration(float64(l.best) * forgets); l.best == 0 || now < best {
		l.best = now
	} else {
		l.best = best
	}
	return now - l.best
}
