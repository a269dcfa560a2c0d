package allowance

import (
	"sync"
	"time"

	"github.com/stayput/stayput/inplace/concurrency"
)

// Load is concurrency.Load for many workers. A nil Load measures nothing, and bounds nothing.
type Load struct {
	// Tell is told each second how many pods are out of service, and how many may be.
	Tell func(out, bound int)

	lock     sync.Mutex
	measured concurrency.Load
}

// Waited notes how long a request of the namespace was due before a worker took it.
func (l *Load) Waited(namespace string, long time.Duration) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.measured.Waited(namespace, long)
}

// Wrote notes how long a write took.
func (l *Load) Wrote(long time.Duration) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.measured.Wrote(long)
}

// cameBack notes for how long a pod was out of service: SlowAfter at most, for as long it takes up room. One that is out for Patience has
// not come back.
func (l *Load) cameBack(long time.Duration) {
	if l == nil || long >= concurrency.Patience {
		return
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	l.measured.CameBack(min(long, concurrency.SlowAfter))
}

// bound returns how many pods may be out of service at a time; 0 for any number.
func (l *Load) bound() int {
	if l == nil {
		return 0
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.measured.Bound()
}

// tick moves the bound, given how many pods are out of service, how many of these are not slow, and whether others wait.
func (l *Load) tick(out, quick int, more bool) {
	if l == nil {
		return
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	l.measured.Tick(quick, more)
	l.Tell(out, l.measured.Bound())
}
