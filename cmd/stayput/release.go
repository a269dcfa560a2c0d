package main

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/controller"
)

// releaseTimeout bounds how long others may keep changing what is being released.
const releaseTimeout = 2 * time.Minute

// release gives every update back to the native controllers. No manager may run meanwhile: it would take them up again.
func release(ctx context.Context, o options) error {
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	config, err := connection()
	if err != nil {
		return err
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	return controller.ReleaseAll(ctx, direct, o.reader(direct))
}
