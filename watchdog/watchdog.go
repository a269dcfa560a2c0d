// Package watchdog notices work that does not end. A leader whose workers hang would renew its Lease all the while, and what it
// holds would be held for ever.
package watchdog

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// every is how often the Watchdog looks.
const every = time.Second

// Watchdog knows what is in flight. API calls end by their contexts, so what is overdue computes or waits for something that
// knows none, and nothing inside the process can end it. The zero value is ready for use.
type Watchdog struct {
	mu       sync.Mutex
	inFlight map[*work]bool
}

type work struct {
	name  string
	begun time.Time
	limit time.Duration
}

// Begin notes that work begins which must not take longer than limit. The caller calls end when it is done.
func (w *Watchdog) Begin(name string, limit time.Duration) (end func()) {
	begun := &work{name: name, begun: time.Now(), limit: limit}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inFlight == nil {
		w.inFlight = map[*work]bool{}
	}
	w.inFlight[begun] = true
	return func() { w.end(begun) }
}

func (w *Watchdog) end(done *work) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.inFlight, done)
}

// Check is a healthz.Checker that fails as long as something is overdue, and says what.
func (w *Watchdog) Check(*http.Request) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for each := range w.inFlight {
		if took := time.Since(each.begun); took > each.limit {
			return fmt.Errorf("%s hangs: it began %s ago and should take no more than %s", each.name, took.Round(time.Second), each.limit)
		}
	}
	return nil
}

// NeedLeaderElection is false: requests are answered on every replica.
func (w *Watchdog) NeedLeaderElection() bool { return false }

// Start returns an error as soon as something is overdue. That ends the manager, which hands over its Lease, and by it the process.
func (w *Watchdog) Start(ctx context.Context) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := w.Check(nil); err != nil {
				return err
			}
		}
	}
}
