package kinds

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/internal/observe"
)

// StatefulSets is the kind whose pods have ordinals.
var StatefulSets = revised(observe.StatefulSets, Kind{
	Controller: "statefulset-updates",
	Nodes:      nodeTurns,
	Finished: func(workload client.Object) bool {
		statefulSet, ok := workload.(*apps.StatefulSet)
		return ok && isUpdated(statefulSet)
	},
})

// isUpdated reports whether `kubectl rollout status` would end (kubectl/pkg/polymorphichelpers/rollout_status.go), and the
// pods are available besides.
func isUpdated(statefulSet *apps.StatefulSet) bool {
	status, wanted := statefulSet.Status, statefulSet.Replicas()
	return status.ObservedGeneration >= statefulSet.Generation && int(status.AvailableReplicas) >= wanted &&
		(int(status.UpdatedReplicas) >= wanted-statefulSet.Partition() || status.CurrentRevision == status.UpdateRevision)
}
