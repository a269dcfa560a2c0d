package controller

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// sharedQueue is the queue of controller-runtime, with a share for each namespace: no more requests of a namespace are worked on at a
// time. What exceeds that is set aside, so that no worker is kept from the requests behind it. A namespace with many requests, or with
// slow ones, then waits for itself.
type sharedQueue struct {
	priorityqueue.PriorityQueue[reconcile.Request]

	lock sync.Mutex
	// working counts requests by namespace. Aside has those that wait for one of these to be done.
	working map[string]int
	aside   map[string][]setAside
}

type setAside struct {
	request  reconcile.Request
	priority int
}

// newQueue returns the queue of a controller.
func newQueue(
	name string, limiter workqueue.TypedRateLimiter[reconcile.Request],
) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	contained := priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = limiter })
	return &sharedQueue{PriorityQueue: contained, working: map[string]int{}, aside: map[string][]setAside{}}
}

// GetWithPriority waits for a request whose namespace has not used its share, and returns it.
func (q *sharedQueue) GetWithPriority() (request reconcile.Request, priority int, ended bool) {
	for {
		request, priority, ended = q.PriorityQueue.GetWithPriority()
		if ended || q.begins(request, priority) {
			return request, priority, ended
		}
	}
}

// Get is GetWithPriority without the priority.
func (q *sharedQueue) Get() (request reconcile.Request, ended bool) {
	request, _, ended = q.GetWithPriority()
	return request, ended
}

// begins counts the request. If its namespace has used its share, it sets the request aside, and returns false.
func (q *sharedQueue) begins(request reconcile.Request, priority int) bool {
	q.lock.Lock()
	defer q.lock.Unlock()
	if q.working[request.Namespace] >= share {
		q.aside[request.Namespace] = append(q.aside[request.Namespace], setAside{request, priority})
		return false
	}
	q.working[request.Namespace]++
	return true
}

// Done ends the work on a request. Another request of its namespace goes back to the others.
func (q *sharedQueue) Done(request reconcile.Request) {
	q.PriorityQueue.Done(request)
	q.lock.Lock()
	defer q.lock.Unlock()
	in := request.Namespace
	if q.working[in]--; q.working[in] == 0 {
		delete(q.working, in)
	}
	if aside := q.aside[in]; len(aside) > 0 {
		q.aside[in] = aside[1:]
		q.PriorityQueue.Done(aside[0].request)
		q.AddWithOpts(priorityqueue.AddOpts{Priority: &aside[0].priority}, aside[0].request)
	} else {
		delete(q.aside, in)
	}
}
