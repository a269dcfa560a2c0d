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
//
// To end the process helps where the process is at fault. Where what is in one namespace is, the next process would end as well, and the next: one
// tenant would keep all others from theirs. So as long as work of the same sort gets done in other namespaces, and is overdue in none of them, a
// namespace is left to itself: what is held there lapses by itself, as the leader does not sign it.
type Watchdog struct {
	mu       sync.Mutex
	inFlight map[*begun]bool
	// done are the two namespaces in which work of a sort, by that, began last of all that ended.
	done map[string]*lastDone
}

// Work is something that is to end.
type Work struct {
	// Sort is what work has in common that should get done if any of it does.
	Sort string
	// Namespace and Name are of what it is about.
	Namespace, Name string
}

func (w Work) String() string { return w.Sort + " " + w.Namespace + "/" + w.Name }

type begun struct {
	Work
	at    time.Time
	limit time.Duration
}

// Begin notes that work begins which must not take longer than limit. The caller calls end when it is done.
func (w *Watchdog) Begin(work Work, limit time.Duration) (end func()) {
	one := &begun{work, time.Now(), limit}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inFlight == nil {
		w.inFlight, w.done = map[*begun]bool{}, map[string]*lastDone{}
	}
	w.inFlight[one] = true
	return func() { w.end(one) }
}

func (w *Watchdog) end(one *begun) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.inFlight, one)
	if w.done[one.Sort] == nil {
		w.done[one.Sort] = &lastDone{}
	}
	w.done[one.Sort].note(one)
}

// lastDone is the work that began last of all that ended, and the one that did of all in other namespaces than that.
type lastDone struct{ last, elsewhere *begun }

func (d *lastDone) note(one *begun) {
	switch {
	case d.last == nil || d.last.Namespace == one.Namespace:
		d.last = later(d.last, one)
	case one.at.Before(d.last.at):
		d.elsewhere = later(d.elsewhere, one)
	default:
		d.last, d.elsewhere = one, d.last
	}
}

func later(a, b *begun) *begun {
	if a == nil || a.at.Before(b.at) {
		return b
	}
	return a
}

// since reports whether work began after the one, in another namespace, and ended.
func (d *lastDone) since(one *begun) bool {
	if d == nil {
		return false
	}
	for _, done := range []*begun{d.last, d.elsewhere} {
		if done != nil && done.Namespace != one.Namespace && done.at.After(one.at) {
			return true
		}
	}
	return false
}

// Check is a healthz.Checker that fails as long as something is overdue, unless that is one namespace's own, and says what.
func (w *Watchdog) Check(*http.Request) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	late := w.overdue()
	for _, one := range late {
		if one.Namespace != late[0].Namespace || !w.done[one.Sort].since(one) {
			return fmt.Errorf("%s hangs: it began %s ago and should take no more than %s", one.Work, time.Since(one.at).Round(time.Second), one.limit)
		}
	}
	return nil
}

func (w *Watchdog) overdue() []*begun {
	var late []*begun
	for one := range w.inFlight {
		if time.Since(one.at) > one.limit {
			late = append(late, one)
		}
	}
	return late
}

// NeedLeaderElection is false: requests are answered on every replica.
func (w *Watchdog) NeedLeaderElection() bool { return false }

// Start returns an error as soon as Check does. That ends the manager, which hands over its Lease, and by it the process.
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
