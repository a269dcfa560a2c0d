package controller

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/stayput/stayput/internal/watchdog"
)

// TestNamespacesHaveShares: of very many requests of one namespace, as many are worked on as are its share, and a request of another
// namespace that comes last is worked on at once. None is lost, and none is worked on twice.
func TestNamespacesHaveShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 1000
		q := newQueue("test", retries())
		var lock sync.Mutex
		worked, now := map[reconcile.Request]int{}, map[string]int{}
		work := func() {
			for request, ended := q.Get(); !ended; request, ended = q.Get() {
				lock.Lock()
				now[request.Namespace]++
				if now[request.Namespace] > share {
					t.Errorf("%d requests of namespace %s are worked on", now[request.Namespace], request.Namespace)
				}
				lock.Unlock()
				time.Sleep(time.Second)
				lock.Lock()
				worked[request]++
				now[request.Namespace]--
				lock.Unlock()
				q.Done(request)
			}
		}
		for range workers {
			go work()
		}
		for i := range many {
			q.Add(in("greedy", i))
		}
		synctest.Wait()
		q.Add(in("other", 0))
		q.Add(in("greedy", many-1)) // once more, while it is set aside
		time.Sleep(time.Second + 1)
		if lock.Lock(); worked[in("other", 0)] != 1 || len(worked) != share+1 {
			t.Errorf("%d requests are done after a second, of the other namespace %d", len(worked), worked[in("other", 0)])
		}
		lock.Unlock()
		time.Sleep(many * time.Second)
		synctest.Wait()
		q.ShutDown()
		for i := range many - 1 {
			if worked[in("greedy", i)] != 1 {
				t.Errorf("request %d is worked on %d times", i, worked[in("greedy", i)])
			}
		}
		if len(worked) != many+1 || len(q.(*sharedQueue).working)+len(q.(*sharedQueue).aside) > 0 {
			t.Errorf("%d requests are done, and %v are remembered", len(worked), q.(*sharedQueue).working)
		}
	})
}

// TestSetAsideByPriority: requests of low priority that were set aside come after all others.
func TestSetAsideByPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue("test", retries()).(*sharedQueue)
		low := priorityqueue.AddOpts{Priority: new(handler.LowPriority)}
		for i := range share + 1 {
			q.AddWithOpts(low, in("greedy", i))
		}
		for range share {
			q.Get()
		}
		next := make(chan reconcile.Request)
		go func() {
			request, _ := q.Get()
			next <- request
		}()
		synctest.Wait() // the last one is set aside
		q.Add(in("other", 0))
		if got := <-next; got != in("other", 0) {
			t.Errorf("%v is next", got)
		}
		q.Done(in("greedy", 0))
		q.Add(in("other", 1))
		synctest.Wait()
		for _, want := range []reconcile.Request{in("other", 1), in("greedy", share)} {
			if got, priority, _ := q.GetWithPriority(); got != want || priority != map[string]int{"greedy": handler.LowPriority}[got.Namespace] {
				t.Errorf("%v with priority %d is next, want %v", got, priority, want)
			}
		}
		q.ShutDown()
	})
}

func in(namespace string, name any) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(name)}}
}

// TestTenantWaitsForItself has more workloads of one namespace hang than there are workers, with the controllers' own
// queue and number of workers. Meanwhile it reconciles a workload of another namespace many times.
func TestTenantWaitsForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const looks, look = 100, 10 * time.Millisecond
		ctx, cancel := context.WithCancel(t.Context())
		var dog watchdog.Watchdog
		var began, looked time.Time
		left := looks
		set := options()
		set.Reconciler = watched{reconcile.Func(func(_ context.Context, request reconcile.Request) (reconcile.Result, error) {
			if request.Namespace == "greedy" {
				time.Sleep(time.Hour) // as a computation, which no context ends
				return reconcile.Result{}, nil
			}
			time.Sleep(look)
			if left--; left > 0 {
				return reconcile.Result{RequeueAfter: retryFirst}, nil
			}
			looked = time.Now()
			return reconcile.Result{}, nil
		}), &dog, "Deployment"}
		c, err := controller.NewUnmanaged("updates", set)
		if err != nil {
			t.Fatal(err)
		}
		requests := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			for i := range 2 * workers {
				queue.Add(in("greedy", i))
			}
			go func() {
				time.Sleep(time.Second) // by then they hang
				began = time.Now()
				queue.Add(in("other", "web"))
			}()
			return nil
		})
		if err := c.Watch(requests); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- c.Start(ctx) }()
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		if took := looked.Sub(began); left > 0 || took > 2*looks*(look+retryFirst) {
			t.Errorf("%d reconciles of the other namespace are left, all took %s", left, took)
		}
		if err := dog.Check(nil); err != nil {
			t.Errorf("the watchdog would end the manager: %v", err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
