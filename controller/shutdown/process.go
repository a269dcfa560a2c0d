package shutdown

import (
	"context"
	"errors"
	"fmt"

	"github.com/stayput/stayput/controller/write"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/internal/observe"
)

// OfProcess runs in a manager whose webhooks no longer answer. A manager that is told to stop still holds writes until
// then, and perhaps no other manager is left to end these holds. So OfProcess nudges the native controllers of all
// updates in progress.
//
// There is little time, and the context bounds everything. So OfProcess reads the manager's cache, which has been filled up to now. A nudge
// that comes from an older object is refused, and no nudge is needed where another client has just written. Live and the client talk to the
// API server itself.
func OfProcess(ctx context.Context, c client.Client, live client.Reader, cached observe.Reader) error {
	r := runner{writer: write.Writer{Client: c, Live: live}, reader: cached}
	var failed []error
	for _, kind := range observe.Kinds {
		workloads, err := r.updating(ctx, kind)
		source := kind.Source(cached)
		nudge := func(ctx context.Context, workload types.NamespacedName) error { return r.nudge(ctx, workload, source) }
		failed = append(failed, err, sideBySide(ctx, workloads, nudge))
	}
	return errors.Join(failed...)
}

// nudge nudges the native controllers of one workload, if it has an update in progress.
func (r runner) nudge(ctx context.Context, workload types.NamespacedName, read observe.Source) error {
	rollout, err := read(ctx, workload)
	if err != nil || rollout == nil {
		return err
	}
	return sideBySide(ctx, rollout.Nudge(), func(ctx context.Context, step steps.Step) error {
		_, err := r.writer.Carry(ctx, step)
		if err == nil || write.IsOutdated(err) {
			return nil // another manager was faster, or the change that came first nudged the native controller
		}
		return fmt.Errorf("%s: %s: %w", workload, step.Describe(), err)
	})
}

// atATime is how many requests are made in parallel.
const atATime = 16

// sideBySide calls do for each item, in parallel and in their order, until the context ends. An error does not stop the
// others.
func sideBySide[T any](ctx context.Context, items []T, do func(context.Context, T) error) error {
	failed := make([]error, len(items))
	workqueue.ParallelizeUntil(ctx, atATime, len(items), func(i int) { failed[i] = do(ctx, items[i]) })
	return errors.Join(errors.Join(failed...), ctx.Err())
}
