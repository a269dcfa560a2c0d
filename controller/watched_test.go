package controller

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/internal/watchdog"
)

func TestReconcileThatHangsIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dog watchdog.Watchdog
		takes := func(duration time.Duration) reconcile.Reconciler {
			return watched{reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
				time.Sleep(duration)
				return reconcile.Result{}, nil
			}), &dog, "Deployment"}
		}
		for range 10 {
			_, _ = takes(reconcileTimeout).Reconcile(t.Context(), fixture.Request)
			if err := dog.Check(nil); err != nil {
				t.Errorf("reconciles within their timeout: %v", err)
			}
		}
		go func() { _, _ = takes(time.Hour).Reconcile(t.Context(), fixture.Request) }()
		time.Sleep(2*reconcileTimeout + time.Second)
		if err := dog.Check(nil); err == nil || !strings.Contains(err.Error(), "Deployment "+fixture.Request.String()) {
			t.Errorf("a reconcile that has not ended for %s: %v", 2*reconcileTimeout, err)
		}
		time.Sleep(time.Hour)
		if err := dog.Check(nil); err != nil {
			t.Errorf("after it has ended: %v", err)
		}
	})
}
