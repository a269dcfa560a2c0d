package port

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// places is memory that requests take while they are decided. Memory that is free goes to the caller who has the least of it, and of one
// caller's requests to the one that came first. So callers at one address can have all the memory, but others wait for it no longer than
// for one request to be answered.
type places struct {
	lock    sync.Mutex
	free    int64
	taken   map[string]int64 // by caller
	waiting []*waiter        // in the order they came
}

// waiter is a request that waits for memory.
type waiter struct {
	caller string
	takes  int64
	given  chan struct{} // closed when it has got it
}

func newPlaces(free int64) *places { return &places{free: free, taken: map[string]int64{}} }

// take returns once the caller has so much memory, or with the cause why the context ended.
func (p *places) take(ctx context.Context, caller string, takes int64) error {
	w := &waiter{caller, takes, make(chan struct{})}
	p.lock.Lock()
	p.waiting = append(p.waiting, w)
	p.give()
	p.lock.Unlock()
	select {
	case <-w.given:
		return nil
	case <-ctx.Done():
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	if at := slices.Index(p.waiting, w); at >= 0 {
		p.waiting = slices.Delete(p.waiting, at, at+1)
	} else {
		p.free += takes
		p.count(caller, -takes)
	}
	p.give() // what is behind it may need less
	return context.Cause(ctx)
}

// leave gives back what take took.
func (p *places) leave(caller string, took int64) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.free += took
	p.count(caller, -took)
	p.give()
}

// give gives what is free to those that wait, in turn. One that needs more than is free keeps those behind it waiting.
func (p *places) give() {
	for len(p.waiting) > 0 {
		next := slices.MinFunc(p.waiting, func(a, b *waiter) int { return cmp.Compare(p.taken[a.caller], p.taken[b.caller]) })
		if next.takes > p.free {
			return
		}
		p.waiting = slices.DeleteFunc(p.waiting, func(w *waiter) bool { return w == next })
		p.free -= next.takes
		p.count(next.caller, next.takes)
		close(next.given)
	}
}

func (p *places) count(caller string, more int64) {
	if p.taken[caller] += more; p.taken[caller] == 0 {
		delete(p.taken, caller)
	}
}
