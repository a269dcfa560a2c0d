package kinds

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/internal/observe"
)

// DaemonSets is the kind whose updates move pods from one ControllerRevision to another, on all nodes.
var DaemonSets = revised(observe.DaemonSets, Kind{
	Controller: "daemonset-updates",
	Nodes:      nodeMatters,
	Finished: func(workload client.Object) bool {
		daemonSet, ok := workload.(*apps.DaemonSet)
		return ok && isRolledOut(daemonSet)
	},
})

// isRolledOut reports whether `kubectl rollout status` would end (kubectl/pkg/polymorphichelpers/rollout_status.go).
func isRolledOut(daemonSet *apps.DaemonSet) bool {
	status := daemonSet.Status
	return status.ObservedGeneration >= daemonSet.Generation &&
		status.UpdatedNumberScheduled >= status.DesiredNumberScheduled && status.NumberAvailable >= status.DesiredNumberScheduled
}
