package deployments

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/engine"
)

// Traits are those of Deployments. The ReplicaSet controller creates and deletes their pods; the Deployment controller scales ReplicaSets,
// deletes old ones and reports the status.
var Traits = engine.Traits{ShortName: "deploy", PodsBy: inplace.NativeController("replicaset-controller"), Scaled: true}

// Workload implements engine.Rollout.
func (r Rollout) Workload() engine.Object { return r.Deployment }

// Holders implements engine.Rollout.
func (r Rollout) Holders() []engine.Object { return engine.ObjectsOf(r.ReplicaSets) }

// Snapshot implements engine.Rollout.
func (r *Rollout) Snapshot() *engine.Snapshot { return &r.Seen }

// Done implements engine.Rollout.
func (r Rollout) Done() bool {
	return len(r.oldReplicaSets(r.UpdateRevision())) == 0 && Complete(r.Deployment, r.Deployment.Status)
}

// Overdue implements engine.Rollout.
func (r Rollout) Overdue() bool { return Overdue(r.Deployment) }

// Fresh implements engine.Rollout.
func (r Rollout) Fresh() bool {
	newRS := r.UpdateRevision()
	return newRS != nil && newRS.Status.Replicas == 0
}

// LooksComplete reports whether users and tools would take the status for the end of the rollout: rollout_status.go in
// kubectl/pkg/polymorphichelpers. The native DeploymentComplete is stricter. But with surge pods even that can be true in a moment
// in which a pod moves between two ReplicaSets and is counted by neither.
func LooksComplete(d *apps.Deployment, status appsv1.DeploymentStatus) bool {
	return status.ObservedGeneration >= d.Generation && status.UpdatedReplicas >= apps.Desired(d) &&
		status.Replicas <= status.UpdatedReplicas && status.AvailableReplicas >= status.UpdatedReplicas
}
