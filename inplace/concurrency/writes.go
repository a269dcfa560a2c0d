package concurrency

import (
	"cmp"
	"time"
)

const (
	// leastWrites is the least bound. It begins there, so that the first writes show how quick writes can be.
	leastWrites = 2
	// MostWrites is the largest bound.
	MostWrites = 64
	// slow is how many times as long as the best one of its kind a write may take.
	slow = 3
	// falls is what is left of the bound if the writes of a round were slow.
	falls = 0.7
	// forgets is by how much the best time grows with each write. So if writes take longer for good, as with another policy, they are slow
	// for some ten thousand writes, and not for ever.
	forgets = 1.00003
)

// Writes bounds how many writes of the leader are in flight at a time, whatever they are for. An API server works on as many requests at a
// time as it has processors. More writes than that are not made any sooner: they wait in the API server, and so does everybody else.
//
// How many processors there are, and what others ask for, shows in how long writes take. So the bound falls if most writes of a round took
// several times as long as the best one of their kind did, and rises by one if they did not and others wait for their turn. A round is as
// many writes as may be in flight, each begun under the present bound. A few slow writes do not count: a policy may wait for something.
//
// The zero Writes has measured nothing.
type Writes struct {
	bound int
	// best is how long a write takes if the API server has little else to do, by kind.
	best map[string]time.Duration
	// since is when the round began.
	since time.Time
	// quick and slow count the writes of the round that are over.
	quick, slow int
}

// Most returns how many writes may be in flight now.
func (w *Writes) Most() int { return cmp.Or(w.bound, leastWrites) }

// Took notes from when until when a write of that kind was in flight, and whether others wait for their turn.
func (w *Writes) Took(kind string, began, ended time.Time, others bool) {
	long := ended.Sub(began)
	best := w.improve(kind, long)
	if began.Before(w.since) {
		return
	}
	if long > slow*best {
		w.slow++
	} else {
		w.quick++
	}
	if w.quick+w.slow < w.Most() {
		return
	}
	switch {
	case w.slow > w.quick:
		w.bound = max(leastWrites, int(falls*float64(w.Most())))
	case others:
		w.bound = min(MostWrites, w.Most()+1)
	}
	w.since, w.quick, w.slow = ended, 0, 0
}

// improve returns the best time of that kind of write, which may be this one.
func (w *Writes) improve(kind string, long time.Duration) time.Duration {
	if w.best == nil {
		w.best = map[string]time.Duration{}
	}
	best := long
	if known := w.best[kind]; known > 0 {
		best = min(long, time.Duration(forgets*float64(known)))
	}
	w.best[kind] = best
	return best
}
