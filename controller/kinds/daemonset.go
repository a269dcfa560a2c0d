package kinds

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/daemonsets"
	"github.com/stayput/stayput/inplace/rehearsal"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/observe"
)

// DaemonSets are updated by moving pods, which they control themselves, from one ControllerRevision to another.
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

// DaemonSetsBy is the Source of DaemonSets that are read like that.
func DaemonSetsBy(read func(context.Context, types.NamespacedName) (*daemonsets.DaemonRollout, error)) Source {
	return reading(read, func(read *daemonsets.DaemonRollout) Rollout { return DaemonSet{read} })
}

// DaemonSet is the rollout of a DaemonSet.
type DaemonSet struct{ *daemonsets.DaemonRollout }

// Scene implements Rollout.
func (d DaemonSet) Scene() Scene {
	return Scene{Workload: d.DaemonRollout.DaemonSet, Revisions: objectsOf(d.Revisions), Pods: d.Pods, Pullers: d.Pull.Pullers,
		Mode: d.Mode, Settings: d.Settings, Now: d.Now}
}

// Asks implements Rollout. Nothing is put off, as neither replicas nor a status are ours to write.
func (d DaemonSet) Asks() Asks {
	return Asks{Endpoints: &d.Endpoints, Ahead: &d.Ahead, Beats: &steps.Beats{}, Pull: &d.Pull, Rehearsal: &d.Rehearsal, Own: &rehearsal.Rehearsal{}}
}

// Done implements Rollout.
func (d DaemonSet) Done() bool { return !d.Unfinished() && isRolledOut(d.DaemonRollout.DaemonSet) }

// Fresh implements Rollout.
func (d DaemonSet) Fresh() bool { return !d.Begun() }

// Overdue is false: DaemonSets have no deadline.
func (d DaemonSet) Overdue() bool { return false }

// isRolledOut is what `kubectl rollout status` waits for (kubectl/pkg/polymorphichelpers/rollout_status.go).
func isRolledOut(daemonSet *apps.DaemonSet) bool {
	status := daemonSet.Status
	return status.ObservedGeneration >= daemonSet.Generation &&
		status.UpdatedNumberScheduled >= status.DesiredNumberScheduled && status.NumberAvailable >= status.DesiredNumberScheduled
}
