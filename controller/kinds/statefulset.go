package kinds

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/statefulsets"
	"github.com/stayput/stayput/observe"
)

// StatefulSets is the kind whose pods have ordinals. StatefulSets control their pods themselves.
var StatefulSets = Kind{
	Kind:       observe.StatefulSets,
	Controller: "statefulset-updates",
	Source: func(reader observe.Reader) Source {
		return reading(reader.StatefulRollout, func(read *statefulsets.Rollout) Rollout { return StatefulSet{read} })
	},
	Owned: func(_ context.Context, _ observe.Reader, pod *corev1.Pod) (client.Object, error) {
		return pod, nil
	},
	Nodes: nodeTurns,
	Finished: func(workload client.Object) bool {
		statefulSet, ok := workload.(*apps.StatefulSet)
		return ok && isUpdated(statefulSet)
	},
}

// StatefulSet is the rollout of a StatefulSet.
type StatefulSet struct{ *statefulsets.Rollout }

// Workload implements Rollout.
func (s StatefulSet) Workload() client.Object { return s.Rollout.StatefulSet }

// Revisions implements Rollout.
func (s StatefulSet) Revisions() []client.Object { return objectsOf(s.Rollout.Revisions) }

// Snapshot implements Rollout.
func (s StatefulSet) Snapshot() *engine.Snapshot { return &s.Seen }

// Done implements Rollout.
func (s StatefulSet) Done() bool { return !s.Unfinished() && isUpdated(s.Rollout.StatefulSet) }

// Fresh implements Rollout.
func (s StatefulSet) Fresh() bool { return !s.Started() }

// Overdue implements Rollout. It returns false, because StatefulSets have no progress deadline.
func (s StatefulSet) Overdue() bool { return false }

// isUpdated reports whether `kubectl rollout status` would end (kubectl/pkg/polymorphichelpers/rollout_status.go), and the
// pods are available besides.
func isUpdated(statefulSet *apps.StatefulSet) bool {
	status, wanted := statefulSet.Status, statefulSet.Replicas()
	beyond := max(wanted+statefulSet.FirstOrdinal()-max(statefulSet.Partition(), statefulSet.FirstOrdinal()), 0)
	return status.ObservedGeneration >= statefulSet.Generation && int(status.AvailableReplicas) >= wanted &&
		(int(status.UpdatedReplicas) >= beyond || status.CurrentRevision == status.UpdateRevision)
}
