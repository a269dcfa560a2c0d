package write

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stayput/stayput/inplace/concurrency"
	"github.com/stayput/stayput/inplace/steps"
)

// Turns bounds how many writes of all workers of the leader are in flight at a time; see concurrency.Writes. The others wait. Next is the
// namespace with the fewest writes in flight and, of several, the one whose last turn is the longest ago. So a namespace whose writes are
// many, or take long, keeps the others waiting no longer than one whose writes are few. Pods are taken out of service last, because what
// waits before these writes are those that pods need which are already out.
//
// The zero Turns has given no turn yet.
type Turns struct {
	lock     sync.Mutex
	bound    concurrency.Writes
	inFlight int
	// lines are those of all namespaces with writes. The one whose last turn is the longest ago comes first.
	lines []*line
}

// line are the writes of one namespace.
type line struct {
	namespace string
	// waiting has the writes that take pods out of service last.
	waiting  []*turn
	inFlight int
}

// turn is the turn of one write.
type turn struct {
	of   *Turns
	line *line
	kind string
	// last: others come first, of whatever namespace.
	last bool
	// given is closed when the turn comes. What follows is known from then on.
	given chan struct{}
	since time.Time
	// patience ends the turn before the write.
	patience *time.Timer
}

// longestTurn is after what time the next write need not wait for this one any longer. What takes so long is not work of the API server,
// but for example the webhook of a policy that does not answer.
const longestTurn = time.Second

// fresh is for how long a pod may be taken out of service as planned. Its condition says since when it is out, and until when.
const fresh = 5 * time.Second

// errNoTurn is the error of a write that was not made, because its context ended before its turn came.
var errNoTurn = errors.New("other writes came first")

// turn waits for the turn of a step that was planned at that time. The turn is nil if it need not wait.
func (w Writer) turn(ctx context.Context, planned time.Time, step steps.Step) (*turn, error) {
	if w.Turns == nil || steps.Urgent(step) {
		return nil, nil
	}
	last := steps.TakesOut(step)
	if last {
		var end context.CancelFunc
		ctx, end = context.WithDeadline(ctx, planned.Add(fresh))
		defer end()
	}
	return w.Turns.take(ctx, w.writtenBy(step), last)
}

// take waits for the turn of a write. The caller calls done when the write is over.
func (t *Turns) take(ctx context.Context, of written, last bool) (*turn, error) {
	one := t.queue(of, last)
	select {
	case <-one.given:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		t.leave(one)
		return nil, fmt.Errorf("%w: %w", errNoTurn, ctx.Err())
	}
	return one, nil
}

// queue puts a write at the end of its namespace's line, before those that come last unless it is one. Its turn may have come when queue
// returns.
func (t *Turns) queue(of written, last bool) *turn {
	t.lock.Lock()
	defer t.lock.Unlock()
	l := t.line(of.namespace)
	one := &turn{of: t, line: l, kind: of.verb + " " + of.kind + " " + of.subresource, last: last, given: make(chan struct{})}
	behind := slices.IndexFunc(l.waiting, func(other *turn) bool { return other.last })
	if last || behind < 0 {
		behind = len(l.waiting)
	}
	l.waiting = slices.Insert(l.waiting, behind, one)
	t.give()
	return one
}

// leave drops a turn that is not used, whether it has come or not.
func (t *Turns) leave(one *turn) {
	t.lock.Lock()
	one.line.waiting = slices.DeleteFunc(one.line.waiting, func(other *turn) bool { return other == one })
	t.forget()
	t.lock.Unlock()
	one.done(errNoTurn)
}

// done ends the turn, if it has come. How long a write took that failed says nothing.
func (o *turn) done(err error) {
	if o != nil && o.patience != nil && o.patience.Stop() {
		o.of.end(o, err == nil)
	}
}

// end ends a turn that was given, and gives the next one.
func (t *Turns) end(one *turn, measured bool) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.inFlight--
	one.line.inFlight--
	if measured {
		t.bound.Took(one.kind, one.since, time.Now(), t.next() != nil)
	}
	t.give()
	t.forget()
}

// give gives as many turns as the bound allows. The caller has the lock.
func (t *Turns) give() {
	for t.inFlight < t.bound.Most() {
		l := t.next()
		if l == nil {
			return
		}
		one := l.waiting[0]
		l.waiting = l.waiting[1:]
		l.inFlight++
		t.inFlight++
		t.lines = append(slices.DeleteFunc(t.lines, func(other *line) bool { return other == l }), l)
		one.since = time.Now()
		one.patience = time.AfterFunc(longestTurn, func() { t.end(one, true) })
		close(one.given)
	}
}

// next returns the line whose turn it is; nil if nothing waits. The caller has the lock.
func (t *Turns) next() *line {
	var first *line
	for _, l := range t.lines {
		if len(l.waiting) > 0 && (first == nil || l.before(first)) {
			first = l
		}
	}
	return first
}

// before reports whether the first write of the line comes before that of the other line, although its last turn was later.
func (l *line) before(other *line) bool {
	if l.waiting[0].last != other.waiting[0].last {
		return other.waiting[0].last
	}
	return l.inFlight < other.inFlight
}

// line returns the line of the namespace. The caller has the lock.
func (t *Turns) line(namespace string) *line {
	for _, l := range t.lines {
		if l.namespace == namespace {
			return l
		}
	}
	l := &line{namespace: namespace}
	t.lines = append(t.lines, l)
	return l
}

// forget drops the lines of namespaces without writes. The caller has the lock.
func (t *Turns) forget() {
	t.lines = slices.DeleteFunc(t.lines, func(l *line) bool { return l.inFlight == 0 && len(l.waiting) == 0 })
}
