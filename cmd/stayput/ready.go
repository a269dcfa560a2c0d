package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/stayput/stayput/controller/gate"
	"github.com/stayput/stayput/observe"
)

// watch starts an informer for each type of cached. The returned check passes once each informer has its first list: before that, a webhook
// would decide on an incomplete cache.
func watch(ctx context.Context, informers cache.Informers, keep *observe.CacheForm) (healthz.Checker, error) {
	var all []cache.Informer
	for _, object := range cached() {
		informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watch %T: %w", object, err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: keep.OnDelete}); err != nil {
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

// provenBy returns a check that passes once the prober has shown that this process can open readiness gates.
func provenBy(prober *gate.Prober) healthz.Checker {
	return func(*http.Request) error {
		if !prober.Ready() {
			return errors.New("this process has not yet been able to write pod status")
		}
		return nil
	}
}

// once returns a check that, once it has passed, always passes. A replica that can no longer open gates gives none to new pods
// (webhook.Handlers.GateReady), but it must go on holding native writes while updates are in progress. An API server that was away for a
// moment is no reason to stop holding them.
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
