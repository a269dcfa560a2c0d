package kinds

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/controllerrevisions"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/internal/observe"
)

// revised returns the kind whose updates move pods from one ControllerRevision to another. Its workloads control their pods
// themselves.
func revised(observed observe.Revised, kind Kind) Kind {
	kind.Kind = observed.Kind
	kind.Source = func(reader observe.Reader) Source {
		read := func(ctx context.Context, key types.NamespacedName) (*controllerrevisions.Rollout, error) {
			return observed.Rollout(ctx, reader, key)
		}
		return reading(read, func(read *controllerrevisions.Rollout) Rollout { return Revised{read, kind.Finished} })
	}
	kind.Owned = func(_ context.Context, _ observe.Reader, pod *corev1.Pod) (client.Object, error) {
		return pod, nil
	}
	return kind
}

// Revised is the rollout of a workload whose revisions are ControllerRevisions.
type Revised struct {
	*controllerrevisions.Rollout
	finished func(workload client.Object) bool
}

// Workload implements Rollout.
func (r Revised) Workload() client.Object { return r.Kind.Workload().Object }

// Revisions implements Rollout.
func (r Revised) Revisions() []client.Object { return objectsOf(r.Rollout.Revisions) }

// Snapshot implements Rollout.
func (r Revised) Snapshot() *engine.Snapshot { return &r.Seen }

// Done implements Rollout.
func (r Revised) Done() bool { return !r.Unfinished() && r.finished(r.Workload()) }

// Fresh implements Rollout.
func (r Revised) Fresh() bool { return !r.Started() }

// Overdue implements Rollout. It returns false, because these workloads have no progress deadline.
func (r Revised) Overdue() bool { return false }
