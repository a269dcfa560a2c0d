package fair

import (
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queue returns requests of one namespace after the other, in turn, and of each namespace no more than its share at a
// time. So a namespace with many requests, or with slow ones, does not delay others. As long as there are more workers
// than one share, a request of another namespace finds a worker.
//
// Queue contains a queue of controller-runtime, which decides when a request is due and how its priority changes. A
// request that is due waits in the line of its namespace, once, and by priority. So a new leader looks at changes
// before it has looked at everything that exists.
type Queue struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	workers Workers

	lock    sync.Mutex
	changed *sync.Cond
	lines   map[string]*line // by namespace
	turns   []*line          // the lines that may return a request, in the order of their turns
	working int
	ended   bool
}

// Workers is how many workers are for what.
type Workers struct {
	// Share is how many may be busy with one namespace, All how many there are. Reserved is how many of them are only for namespaces with
	// which none is busy.
	Share, All, Reserved int
	// Waited is told for how long each request was due before a worker took it, unless it has low priority and so waits for all others; nil
	// if that does not matter.
	Waited func(namespace string, long time.Duration)
}

// New returns a queue for these workers.
func New(name string, workers Workers, limiter workqueue.TypedRateLimiter[reconcile.Request]) *Queue {
	due := priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = limiter })
	q := &Queue{PriorityQueue: due, workers: workers, lines: map[string]*line{}}
	q.changed = sync.NewCond(&q.lock)
	go q.sort()
	return q
}

// sort moves requests that are due into the lines, until the queue shuts down.
func (q *Queue) sort() {
	for {
		request, priority, ended := q.PriorityQueue.GetWithPriority()
		if ended {
			return
		}
		q.PriorityQueue.Done(request)
		q.put(request, priority)
	}
}

func (q *Queue) put(request reconcile.Request, priority int) {
	q.lock.Lock()
	defer q.lock.Unlock()
	l := q.lines[request.Namespace]
	if l == nil {
		l = newLine()
		q.lines[request.Namespace] = l
	}
	l.put(request, priority)
	q.letTurn(l)
}

// letTurn appends the line to the turns, unless it is among them already, has no request, or its namespace has used its
// share.
func (q *Queue) letTurn(l *line) {
	if l.turns || len(l.waiting) == 0 || len(l.working) >= q.workers.Share {
		return
	}
	l.turns = true
	q.turns = append(q.turns, l)
	q.changed.Signal()
}

// GetWithPriority waits for a request and returns it.
func (q *Queue) GetWithPriority() (request reconcile.Request, priority int, ended bool) {
	q.lock.Lock()
	defer q.lock.Unlock()
	at := q.next()
	for ; at < 0 && !q.ended; at = q.next() {
		q.changed.Wait()
	}
	if q.ended {
		return reconcile.Request{}, 0, true
	}
	l := q.turns[at]
	q.turns, l.turns = slices.Delete(q.turns, at, at+1), false
	request, priority, since := l.take()
	q.working++
	q.letTurn(l)
	if q.workers.Waited != nil && !isLow(priority) {
		q.workers.Waited(request.Namespace, time.Since(since))
	}
	return request, priority, false
}

// next returns which turn is next; -1 if none is. If the last workers are reserved, it is one of a namespace with which none is busy.
func (q *Queue) next() int {
	if q.working < q.workers.All-q.workers.Reserved {
		return min(0, len(q.turns)-1)
	}
	return slices.IndexFunc(q.turns, func(l *line) bool { return len(l.working) == 0 })
}

// Get is GetWithPriority without the priority.
func (q *Queue) Get() (request reconcile.Request, ended bool) {
	request, _, ended = q.GetWithPriority()
	return request, ended
}

// Done ends the work on a request. Another request of the namespace may then be returned.
func (q *Queue) Done(request reconcile.Request) {
	q.lock.Lock()
	defer q.lock.Unlock()
	l := q.lines[request.Namespace]
	if l == nil || !l.working[request] {
		return
	}
	q.working--
	q.changed.Signal()
	if l.done(request); len(l.waiting)+len(l.working) == 0 {
		delete(q.lines, request.Namespace)
		return
	}
	q.letTurn(l)
}

// Len returns how many requests are due.
func (q *Queue) Len() int {
	q.lock.Lock()
	defer q.lock.Unlock()
	due := q.PriorityQueue.Len()
	for _, l := range q.lines {
		due += len(l.waiting)
	}
	return due
}

// ShutDown ends the queue. Workers that wait for a request return.
func (q *Queue) ShutDown() {
	q.PriorityQueue.ShutDown()
	q.lock.Lock()
	defer q.lock.Unlock()
	q.ended = true
	q.changed.Broadcast()
}

// ShutDownWithDrain is ShutDown, as in the queue of controller-runtime.
func (q *Queue) ShutDownWithDrain() { q.ShutDown() }

// line has the requests of one namespace.
type line struct {
	// turns is whether the line is in Queue.turns.
	turns bool
	// waiting has the priorities of the requests that wait. Each of these is in first or in last.
	waiting map[reconcile.Request]int
	// since has since when they wait: those whose priority was raised from low, since then.
	since map[reconcile.Request]time.Time
	// first has the requests of ordinary priority and above, last the others. A request whose priority has risen may be in
	// both.
	first, last []reconcile.Request
	// working has the requests that workers work on. again has the priorities of those among them that have become due
	// since.
	working map[reconcile.Request]bool
	again   map[reconcile.Request]int
}

func newLine() *line {
	return &line{waiting: map[reconcile.Request]int{}, since: map[reconcile.Request]time.Time{},
		working: map[reconcile.Request]bool{}, again: map[reconcile.Request]int{}}
}

func (l *line) put(request reconcile.Request, priority int) {
	if l.working[request] {
		l.again[request] = raised(l.again, request, priority)
		return
	}
	before, waits := l.waiting[request]
	if !waits || isLow(before) && !isLow(priority) {
		l.since[request] = time.Now()
	}
	l.waiting[request] = raised(l.waiting, request, priority)
	switch {
	case isLow(priority) && !waits:
		l.last = append(l.last, request)
	case !isLow(priority) && (!waits || isLow(before)):
		l.first = append(l.first, request)
	}
}

// raised returns the priority of a request that has become due again.
func raised(priorities map[reconcile.Request]int, request reconcile.Request, priority int) int {
	if before, has := priorities[request]; has {
		return max(before, priority)
	}
	return priority
}

func isLow(priority int) bool { return priority <= handler.LowPriority }

// take returns the next request, and since when it has waited. There must be one.
func (l *line) take() (reconcile.Request, int, time.Time) {
	for {
		list := &l.first
		if len(*list) == 0 {
			list = &l.last
		}
		request := (*list)[0]
		*list = (*list)[1:]
		if priority, waits := l.waiting[request]; waits {
			since := l.since[request]
			delete(l.waiting, request)
			delete(l.since, request)
			l.working[request] = true
			return request, priority, since
		}
	}
}

func (l *line) done(request reconcile.Request) {
	delete(l.working, request)
	if priority, again := l.again[request]; again {
		delete(l.again, request)
		l.put(request, priority)
	}
}
