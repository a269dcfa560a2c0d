package fair

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queue hands out requests namespace by namespace, in turn, and of each namespace no more than its share at a time. So one with many requests,
// or with some that take long, keeps no other waiting: as long as there are more workers than one share, a request of another namespace finds one.
//
// When a request is due, and how its priority changes, is for the queue of controller-runtime that it is made of. What is due waits here, each
// request once, and in its namespace by priority: a new leader looks at what changes before it has looked at all there is.
type Queue struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	share int

	lock    sync.Mutex
	changed *sync.Cond
	lines   map[string]*line // by namespace
	turns   []*line          // those of which a request may be handed out, in turn
	ended   bool
}

// New returns a queue whose namespaces have that share of the workers.
func New(name string, share int, limiter workqueue.TypedRateLimiter[reconcile.Request]) *Queue {
	due := priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = limiter })
	q := &Queue{PriorityQueue: due, share: share, lines: map[string]*line{}}
	q.changed = sync.NewCond(&q.lock)
	go q.sort()
	return q
}

// sort puts what is due in line until the queue shuts down.
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

// letTurn gives the line a turn if it is to have one and has none.
func (q *Queue) letTurn(l *line) {
	if l.turns || len(l.waiting) == 0 || len(l.working) >= q.share {
		return
	}
	l.turns = true
	q.turns = append(q.turns, l)
	q.changed.Signal()
}

// GetWithPriority waits for a request.
func (q *Queue) GetWithPriority() (request reconcile.Request, priority int, ended bool) {
	q.lock.Lock()
	defer q.lock.Unlock()
	for len(q.turns) == 0 && !q.ended {
		q.changed.Wait()
	}
	if q.ended {
		return reconcile.Request{}, 0, true
	}
	l := q.turns[0]
	q.turns, l.turns = q.turns[1:], false
	request, priority = l.take()
	q.letTurn(l)
	return request, priority, false
}

// Get is GetWithPriority.
func (q *Queue) Get() (request reconcile.Request, ended bool) {
	request, _, ended = q.GetWithPriority()
	return request, ended
}

// Done makes room for another request of the namespace.
func (q *Queue) Done(request reconcile.Request) {
	q.lock.Lock()
	defer q.lock.Unlock()
	l := q.lines[request.Namespace]
	if l == nil {
		return
	}
	if l.done(request); len(l.waiting)+len(l.working) == 0 {
		delete(q.lines, request.Namespace)
		return
	}
	q.letTurn(l)
}

// Len is how many requests are due.
func (q *Queue) Len() int {
	q.lock.Lock()
	defer q.lock.Unlock()
	due := q.PriorityQueue.Len()
	for _, l := range q.lines {
		due += len(l.waiting)
	}
	return due
}

// ShutDown has all who wait go.
func (q *Queue) ShutDown() {
	q.PriorityQueue.ShutDown()
	q.lock.Lock()
	defer q.lock.Unlock()
	q.ended = true
	q.changed.Broadcast()
}

// ShutDownWithDrain is ShutDown, as that of the queue it is made of.
func (q *Queue) ShutDownWithDrain() { q.ShutDown() }

// line has the requests of one namespace.
type line struct {
	// turns: it is among those of which one is handed out next.
	turns bool
	// waiting are the priorities of those that wait, each of which is in first or in last.
	waiting map[reconcile.Request]int
	// first are those of ordinary priority and above, last the others. One whose priority has risen may be in both.
	first, last []reconcile.Request
	// working are those that were handed out, again the priorities of those among them that have become due since.
	working map[reconcile.Request]bool
	again   map[reconcile.Request]int
}

func newLine() *line {
	return &line{waiting: map[reconcile.Request]int{}, working: map[reconcile.Request]bool{}, again: map[reconcile.Request]int{}}
}

func (l *line) put(request reconcile.Request, priority int) {
	if l.working[request] {
		l.again[request] = raised(l.again, request, priority)
		return
	}
	before, waits := l.waiting[request]
	l.waiting[request] = raised(l.waiting, request, priority)
	switch {
	case isLow(priority) && !waits:
		l.last = append(l.last, request)
	case !isLow(priority) && (!waits || isLow(before)):
		l.first = append(l.first, request)
	}
}

// raised is the priority of a request that has become due again.
func raised(priorities map[reconcile.Request]int, request reconcile.Request, priority int) int {
	if before, has := priorities[request]; has {
		return max(before, priority)
	}
	return priority
}

func isLow(priority int) bool { return priority <= handler.LowPriority }

// take takes the next request; one waits.
func (l *line) take() (reconcile.Request, int) {
	for {
		list := &l.first
		if len(*list) == 0 {
			list = &l.last
		}
		request := (*list)[0]
		*list = (*list)[1:]
		if priority, waits := l.waiting[request]; waits {
			delete(l.waiting, request)
			l.working[request] = true
			return request, priority
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
