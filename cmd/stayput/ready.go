package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/stayput/stayput/internal/observe"
)

// watch starts an informer for each type of cacheOptions. The returned check passes once each informer has its first list: before that, a
// webhook would decide on an incomplete cache.
func watch(ctx context.Context, informers cache.Informers, namespace string, keep *observe.CacheForm) (healthz.Checker, error) {
	var all []cache.Informer
	for object := range cacheOptions(namespace, keep).ByObject {
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
