// Package watchdog notices work that does not end. A leader whose workers hang would go on renewing its Lease, and what it holds would be
// held forever.
package watchdog

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Watchdog knows what work is in progress. API calls end with their contexts. So work that is overdue computes, or waits for something
// without a context, and nothing inside the process can end it. The zero value is ready for use.
//
// Ending the process helps where the process is at fault. Where the objects of one namespace are at fault, the next process would end as
// well, and the one after it: one tenant would keep all others from their updates. So the Watchdog ignores overdue work of one namespace
// while work of the same sort is done in other namespaces, and no work is overdue there. The holds in that namespace expire by
// themselves, because the leader does not renew them.
type Watchdog struct {
	mu       sync.Mutex
	inFlight map[*begun]bool
	// done has, by sort, the work that began last of all that has ended, in each of two namespaces.
	done map[string]*lastDone
}

// Work is something that must end.
type Work struct {
	// Sort is common to all work that should get done if any of it does.
	Sort string
	// Namespace and Name are those of the object that the work is about.
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

// lastDone has, of the work that has ended, the one that began last, and the one that began last in any other namespace.
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

// since reports whether work in another namespace began after this one and has ended.
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

// Check is a healthz.Checker. While work is overdue, it returns an error that names the work. It ignores overdue work of one namespace,
// as the documentation of Watchdog says.
func (w *Watchdog) Check(*http.Request) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	late := w.overdue()
	for _, one := range late {
		if one.Namespace != late[0].Namespace || !w.done[one.Sort].since(one) {
			return fmt.Errorf("%s hangs: it began %s ago and should take no more than %s",
				one.Work, time.Since(one.at).Round(time.Second), one.limit)
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

// NeedLeaderElection returns false: every replica answers requests.
func (w *Watchdog) NeedLeaderElection() bool { return false }

// Start returns an error as soon as Check does. That ends the manager, which hands over its Lease, and then the process.
func (w *Watchdog) Start(ctx context.Context) error {
	err := wait.PollUntilContextCancel(ctx, time.Second, false, func(context.Context) (bool, error) { return false, w.Check(nil) })
	return utilerrors.FilterOut(err, wait.Interrupted)
}
