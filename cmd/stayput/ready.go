package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/stayput/stayput/controller/gate"
	"github.com/stayput/stayput/observe"
)

// watch starts an informer for everything cached. The returned check passes once each has its first list: a webhook asked
// before that would not know what is going on.
func watch(ctx context.Context, informers cache.Informers, keep *observe.CacheForm) (healthz.Checker, error) {
	var all []cache.Informer
	for _, object := range cached() {
		informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watch %T: %w", object, err)
		}
		if _, err := informer.AddEventHandler(keep); err != nil {
			return nil, fmt.Errorf("watch %T: %w", object, err)
		}
		all = append(all, informer)
	}
	return func(*http.Request) error {
		for _, informer := range all {
			if !informer.HasSynced() {
				return errors.New("the caches are still being filled")
			}
		}
		return nil
	}, nil
}

// provenBy checks that this process has shown that it can open readiness gates.
func provenBy(prober *gate.Prober) healthz.Checker {
	return func(*http.Request) error {
		if !prober.Ready() {
			return errors.New("this process has not yet been able to write pod status")
		}
		return nil
	}
}

// once is a check that, having passed, passes for ever. A replica that can no longer open gates gives no more of them to new
// pods (webhook.Handlers.GateReady), but must go on holding what is being moved, and an API server that was away for a
// moment is no reason to let that go.
func once(check healthz.Checker) healthz.Checker {
	var passed atomic.Bool
	return func(request *http.Request) error {
		if passed.Load() {
			return nil
		}
		err := check(request)
		passed.Store(err == nil)
		return err
	}
}
