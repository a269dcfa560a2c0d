package fair

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func in(namespace string, name any) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(name)}}
}

// queueOf runs the test with a queue that has that share, in a synctest bubble of its own.
func queueOf(t *testing.T, share int, test func(t *testing.T, q *Queue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Minute)
		q := New("test", Workers{Share: share, All: 1000}, limiter)
		defer func() {
			if !q.ShuttingDown() {
				q.ShutDown()
			}
		}()
		test(t, q)
	})
}

func (q *Queue) addLow(requests ...reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, requests...)
}

// got returns the next request, if the queue returns one now.
func got(t *testing.T, q *Queue) (found reconcile.Request, handed bool) {
	t.Helper()
	synctest.Wait()
	q.lock.Lock()
	handsOut := len(q.turns) > 0
	q.lock.Unlock()
	if !handsOut {
		return reconcile.Request{}, false
	}
	found, ended := q.Get()
	return found, !ended
}

// expect takes requests from the queue, which must be these, in this order, and no more.
func expect(t *testing.T, q *Queue, want ...reconcile.Request) {
	t.Helper()
	var all []reconcile.Request
	for {
		request, handed := got(t, q)
		if !handed {
			break
		}
		all = append(all, request)
	}
	if !slices.Equal(all, want) {
		t.Fatalf("handed out: %v, want %v", all, want)
	}
}

func TestNamespaceWaitsForItself(t *testing.T) {
	queueOf(t, 2, func(t *testing.T, q *Queue) {
		for i := range 1000 {
			q.Add(in("greedy", i))
		}
		synctest.Wait()
		q.Add(in("other", "web"))
		expect(t, q, in("greedy", 0), in("other", "web"), in("greedy", 1)) // and no third request of namespace greedy
		q.Add(in("third", "web"))
		expect(t, q, in("third", "web"))
		q.Done(in("greedy", 1))
		expect(t, q, in("greedy", 2))
	})
}

// TestWorkersAreReserved: the last workers are only for namespaces with which none is busy.
func TestWorkersAreReserved(t *testing.T) {
	queueOf(t, 2, func(t *testing.T, q *Queue) {
		q.workers.All, q.workers.Reserved = 4, 2
		var first, second = in("a", 0), in("b", 0)
		q.Add(first)
		q.Add(in("a", 1))
		q.Add(second)
		q.Add(in("b", 1))
		q.Add(in("c", 0))
		for _, want := range []reconcile.Request{first, second, in("c", 0)} {
			synctest.Wait()
			if request, _ := q.Get(); request != want {
				t.Fatalf("%v is handed out, want %v", request, want)
			}
		}
		next := make(chan reconcile.Request)
		go func() {
			request, _ := q.Get()
			next <- request
		}()
		synctest.Wait()
		select {
		case request := <-next:
			t.Errorf("%v is handed out to a reserved worker", request)
		default:
		}
		q.Done(first)
		q.Done(second)
		if request := <-next; request != in("a", 1) {
			t.Errorf("%v is handed out afterwards", request)
		}
	})
}

// TestQueueMeasuresWaits: a request waits from when it is due until a worker takes it.
func TestQueueMeasuresWaits(t *testing.T) {
	queueOf(t, 1, func(t *testing.T, q *Queue) {
		waited := map[string]time.Duration{}
		q.workers.Waited = func(namespace string, long time.Duration) { waited[namespace] += long }
		q.Add(in("a", 0))
		q.AddAfter(in("b", 0), time.Second)
		synctest.Wait()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		expect(t, q, in("a", 0), in("b", 0))
		if waited["a"] != 3*time.Second || waited["b"] != 2*time.Second {
			t.Errorf("waited %v", waited)
		}
	})
}

// TestTurnsGoRound has more requests in each namespace than workers.
func TestTurnsGoRound(t *testing.T) {
	queueOf(t, 1, func(t *testing.T, q *Queue) {
		for _, namespace := range []string{"a", "b", "c"} {
			for i := range 3 {
				q.Add(in(namespace, i))
			}
		}
		for i := range 3 {
			for _, namespace := range []string{"a", "b", "c"} {
				request, handed := got(t, q)
				if !handed || request != in(namespace, i) {
					t.Fatalf("%v is handed out, want %v", request, in(namespace, i))
				}
				q.Done(request)
			}
		}
	})
}

func TestRequestIsWorkedOnOnceAtATime(t *testing.T) {
	queueOf(t, 4, func(t *testing.T, q *Queue) {
		web := in("shop", "web")
		q.Add(web)
		q.Add(web)
		expect(t, q, web)
		q.Add(web)
		q.Add(web)
		expect(t, q)
		q.Done(web)
		expect(t, q, web)
		q.Done(web)
		expect(t, q)
		if len(q.lines) != 0 || q.Len() != 0 {
			t.Errorf("%d namespaces are remembered", len(q.lines))
		}
	})
}

func TestChangesComeBeforeTheFirstList(t *testing.T) {
	queueOf(t, 10, func(t *testing.T, q *Queue) {
		q.addLow(in("shop", 0), in("shop", 1), in("shop", 2))
		synctest.Wait()
		q.Add(in("shop", 2))
		q.addLow(in("shop", 2)) // does not lower the priority
		expect(t, q, in("shop", 2), in("shop", 0), in("shop", 1))
	})
}

func TestLaterIsLater(t *testing.T) {
	queueOf(t, 10, func(t *testing.T, q *Queue) {
		late, failed := in("shop", "late"), in("shop", "failed")
		q.AddAfter(late, time.Minute)
		q.AddRateLimited(failed)
		expect(t, q)
		time.Sleep(time.Second)
		expect(t, q, failed)
		q.Add(late) // replaces the later request
		expect(t, q, late)
		q.Done(late)
		time.Sleep(time.Hour)
		expect(t, q)
	})
}

func TestShutDownLetsWorkersGo(t *testing.T) {
	queueOf(t, 1, func(t *testing.T, q *Queue) {
		ended := make(chan bool)
		for range 3 {
			go func() { _, end := q.Get(); ended <- end }()
		}
		synctest.Wait()
		q.ShutDown()
		for range 3 {
			if !<-ended {
				t.Error("a worker got something to do")
			}
		}
	})
}

// TestNothingIsLost has workers for all namespaces. Requests become due again at random, also while workers work on
// them.
func TestNothingIsLost(t *testing.T) {
	const share, workers = 2, 5
	queueOf(t, share, func(t *testing.T, q *Queue) {
		seen, working, lastDue := map[reconcile.Request]time.Time{}, map[string]int{}, map[reconcile.Request]time.Time{}
		for range workers {
			go func() {
				for {
					request, ended := q.Get()
					if ended {
						return
					}
					q.lock.Lock() // guards the variables of this test
					seen[request] = time.Now()
					if working[request.Namespace]++; working[request.Namespace] > share {
						t.Errorf("%d of namespace %s at a time", working[request.Namespace], request.Namespace)
					}
					q.lock.Unlock()
					time.Sleep(time.Duration(1+rand.IntN(20)) * time.Millisecond)
					q.lock.Lock()
					working[request.Namespace]--
					q.lock.Unlock()
					q.Done(request)
				}
			}()
		}
		for range 2000 {
			request := in(fmt.Sprint("ns", rand.IntN(4)), rand.IntN(5))
			q.lock.Lock()
			lastDue[request] = time.Now()
			q.lock.Unlock()
			if rand.IntN(2) == 0 {
				q.addLow(request)
			} else {
				q.Add(request)
			}
			time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
		}
		time.Sleep(time.Minute)
		for request, due := range lastDue {
			if seen[request].Before(due) {
				t.Errorf("%v was due at %v, and worked on last at %v", request, due, seen[request])
			}
		}
	})
}

// TestWhatMayWaitIsNotMeasured: requests of low priority wait for all others, as those of all that exists do at a new leader. That says
// nothing about how late it is with changes.
func TestWhatMayWaitIsNotMeasured(t *testing.T) {
	queueOf(t, 2, func(t *testing.T, q *Queue) {
		waited := map[string]time.Duration{}
		q.workers.Waited = func(namespace string, long time.Duration) { waited[namespace] += long }
		q.addLow(in("a", 0), in("b", 0), in("b", 1))
		synctest.Wait()
		time.Sleep(3 * time.Second)
		q.Add(in("b", 1)) // now it must not wait
		synctest.Wait()
		time.Sleep(time.Second)
		expect(t, q, in("a", 0), in("b", 1), in("b", 0))
		if len(waited) != 1 || waited["b"] != time.Second {
			t.Errorf("waited %v", waited)
		}
	})
}
