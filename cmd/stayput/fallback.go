package main

import (
	"context"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/controller/shutdown"
)

// fallBackAll leaves every update to the native controllers. No manager may run meanwhile: it would take up the updates again.
func fallBackAll(ctx context.Context, c client.Client, o options) error {
	ctx, cancel := context.WithTimeout(ctx, uninstallPatience)
	defer cancel()
	return shutdown.Uninstall(ctx, c, o.reader(c))
}

// clientOver returns a client that reads from the API server itself, without a cache.
func clientOver(config *rest.Config) (client.Client, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme})
}
