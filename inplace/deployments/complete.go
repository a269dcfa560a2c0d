package deployments

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/stayput/stayput/inplace/apps"
)

// LooksComplete reports whether users and tools would take the status for the end of the rollout: rollout_status.go in
// kubectl/pkg/polymorphichelpers. The native DeploymentComplete is stricter. But with surge pods even that can be true in a moment
// in which a pod moves between two ReplicaSets and is counted by neither.
func LooksComplete(d *apps.Deployment, status appsv1.DeploymentStatus) bool {
	return status.ObservedGeneration >= d.Generation && status.UpdatedReplicas >= apps.Desired(d) &&
		status.Replicas <= status.UpdatedReplicas && status.AvailableReplicas >= status.UpdatedReplicas
}
