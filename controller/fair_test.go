package controller

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/stayput/stayput/internal/watchdog"
)

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
				return reconcile.Result{RequeueAfter: soon}, nil
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
				queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "greedy", Name: fmt.Sprint(i)}})
			}
			go func() {
				time.Sleep(time.Second) // by then they hang
				began = time.Now()
				queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "other", Name: "web"}})
			}()
			return nil
		})
		if err := c.Watch(requests); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- c.Start(ctx) }()
		time.Sleep(30 * time.Minute)
		if took := looked.Sub(began); left > 0 || took > 2*looks*(look+soon) {
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
