package launcher

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// step is an action that runs after other steps.
type step struct {
	name  string
	after []string
	run   func(context.Context) error
}

// runSteps runs every step as soon as those before it are done, and stops at the first failure.
func runSteps(ctx context.Context, steps []step, done func(name string)) error {
	finished := map[string]chan struct{}{}
	for _, each := range steps {
		finished[each.name] = make(chan struct{})
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, each := range steps {
		group.Go(func() error {
			if err := awaitSteps(ctx, finished, each.after); err != nil {
				return err
			}
			if err := each.run(ctx); err != nil {
				return fmt.Errorf("%s: %w", each.name, err)
			}
			done(each.name)
			close(finished[each.name])
			return nil
		})
	}
	return group.Wait()
}

func awaitSteps(ctx context.Context, finished map[string]chan struct{}, names []string) error {
	for _, name := range names {
		if finished[name] == nil {
			return fmt.Errorf("there is no step %s to wait for", name)
		}
		select {
		case <-finished[name]:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
