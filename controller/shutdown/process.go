package shutdown

import (
	"context"
	"errors"
	"fmt"

	"github.com/stayput/stayput/controller/write"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/internal/observe"
)

// OfProcess runs in a manager whose webhooks no longer answer. A manager that is told to stop still holds writes until
// then, and perhaps no other manager is left to end these holds. So OfProcess nudges the native controllers of all
// updates in progress.
//
// The live reader and the client talk to the API server itself. The context bounds everything. In a large cluster there
// is little time. So OfProcess reads whole lists, begins with the namespaces that have marks of Stayput, and no step
// waits for another.
func OfProcess(ctx context.Context, c client.Client, live observe.Reader) error {
	r := runner{writer: write.Writer{Client: c, Live: live}, reader: live}
	namespaces, err := r.concerned(ctx)
	return errors.Join(err, sideBySide(ctx, namespaces, r.nudgeNamespace))
}

// concerned returns the namespaces that have marks of Stayput, and then the others with Stayput's label.
func (r runner) concerned(ctx context.Context) ([]string, error) {
	first := sets.New[string]()
	var failed []error
	for _, kind := range observe.Kinds {
		workloads, err := r.marked(ctx, kind)
		failed = append(failed, err)
		for workload := range workloads {
			first.Insert(workload.Namespace)
		}
	}
	labelled, err := r.labelled(ctx)
	rest := sets.New(labelled...).Difference(first)
	return append(sets.List(first), sets.List(rest)...), errors.Join(append(failed, err)...)
}

func (r runner) nudgeNamespace(ctx context.Context, namespace string) error {
	rollouts, err := r.reader.Nudgers(ctx, namespace)
	if err != nil {
		return err
	}
	var nudges []steps.Step
	for _, rollout := range rollouts {
		nudges = append(nudges, rollout.Nudge()...)
	}
	return sideBySide(ctx, nudges, func(ctx context.Context, step steps.Step) error {
		_, err := r.writer.Carry(ctx, step)
		if err == nil || write.IsOutdated(err) {
			return nil // another manager was faster, or the change that came first nudged the native controller
		}
		return fmt.Errorf("namespace %s: %s: %w", namespace, step.Describe(), err)
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
