package kinds

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/daemonsets"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/observe"
)

// DaemonSets is the kind whose updates move pods from one ControllerRevision to another. DaemonSets control their pods
// themselves.
var DaemonSets = Kind{
	Kind:       observe.DaemonSets,
	Controller: "daemonset-updates",
	Source:     func(reader observe.Reader) Source { return DaemonSetsBy(reader.DaemonRollout) },
	Owned: func(_ context.Context, _ observe.Reader, pod *corev1.Pod) (client.Object, error) {
		return pod, nil
	},
	Nodes:       nodeMatters,
	OnEveryNode: true,
	Finished: func(workload client.Object) bool {
		daemonSet, ok := workload.(*apps.DaemonSet)
		return ok && isRolledOut(daemonSet)
	},
}

// DaemonSetsBy returns a Source of DaemonSets that reads them with that function.
func DaemonSetsBy(read func(context.Context, types.NamespacedName) (*daemonsets.Rollout, error)) Source {
	return reading(read, func(read *daemonsets.Rollout) Rollout { return DaemonSet{read} })
}

// DaemonSet is the rollout of a DaemonSet.
type DaemonSet struct{ *daemonsets.Rollout }

// Workload implements Rollout.
func (d DaemonSet) Workload() client.Object { return d.Rollout.DaemonSet }

// Revisions implements Rollout.
func (d DaemonSet) Revisions() []client.Object { return objectsOf(d.Rollout.Revisions) }

// Snapshot implements Rollout.
func (d DaemonSet) Snapshot() *engine.Snapshot { return &d.Seen }

// Done implements Rollout.
func (d DaemonSet) Done() bool { return !d.Unfinished() && isRolledOut(d.Rollout.DaemonSet) }

// Fresh implements Rollout.
func (d DaemonSet) Fresh() bool { return !d.Started() }

// Overdue implements Rollout. It returns false, because DaemonSets have no progress deadline.
func (d DaemonSet) Overdue() bool { return false }

// isRolledOut reports whether `kubectl rollout status` would end (kubectl/pkg/polymorphichelpers/rollout_status.go).
func isRolledOut(daemonSet *apps.DaemonSet) bool {
	status := daemonSet.Status
	return status.ObservedGeneration >= daemonSet.Generation &&
		status.UpdatedNumberScheduled >= status.DesiredNumberScheduled && status.NumberAvailable >= status.DesiredNumberScheduled
}
