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
	"k8s.io/apimachinery/pkg/util/sets"
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
	inFlight sets.Set[*begun]
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
	// overtaken: work of the same sort in another namespace has begun since and has ended.
	overtaken bool
}

// Begin notes that work begins which must not take longer than limit. The caller calls end when it is done.
func (w *Watchdog) Begin(work Work, limit time.Duration) (end func()) {
	one := &begun{Work: work, at: time.Now(), limit: limit}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inFlight == nil {
		w.inFlight = sets.New[*begun]()
	}
	w.inFlight.Insert(one)
	return func() { w.end(one) }
}

func (w *Watchdog) end(one *begun) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inFlight.Delete(one)
	for other := range w.inFlight {
		if other.Sort == one.Sort && other.Namespace != one.Namespace && other.at.Before(one.at) {
			other.overtaken = true
		}
	}
}

// Check is a healthz.Checker. While work is overdue, it returns an error that names the work. It ignores overdue work of one namespace,
// as the documentation of Watchdog says.
func (w *Watchdog) Check(*http.Request) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	late := w.overdue()
	for _, one := range late {
		if one.Namespace != late[0].Namespace || !one.overtaken {
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
