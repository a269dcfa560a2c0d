package kinds

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/internal/observe"
)

// Deployments is the kind whose updates move pods from one ReplicaSet to another.
var Deployments = Kind{
	Kind:       observe.Deployments,
	Controller: "updates",
	Source:     func(reader observe.Reader) Source { return DeploymentsBy(reader.Rollout) },
	Owned: func(ctx context.Context, reader observe.Reader, pod *corev1.Pod) (client.Object, error) {
		replicaSet, err := reader.ReplicaSetOf(ctx, pod)
		if replicaSet == nil || err != nil {
			return nil, err
		}
		return replicaSet, nil
	},
	Nodes: nodeTurns,
	Finished: func(workload client.Object) bool {
		deployment, ok := workload.(*apps.Deployment)
		return ok && deployments.Complete(deployment, deployment.Status)
	},
}

// DeploymentsBy returns a Source of Deployments that reads them with that function.
func DeploymentsBy(read func(context.Context, types.NamespacedName) (*deployments.Rollout, error)) Source {
	return reading(read, func(read *deployments.Rollout) Rollout { return Deployment{read} })
}

// Deployment is the rollout of a Deployment.
type Deployment struct{ *deployments.Rollout }

// Workload implements Rollout.
func (d Deployment) Workload() client.Object { return d.Rollout.Deployment }

// Revisions implements Rollout.
func (d Deployment) Revisions() []client.Object { return objectsOf(d.ReplicaSets) }

// Snapshot implements Rollout.
func (d Deployment) Snapshot() *engine.Snapshot { return &d.Seen }

// Done implements Rollout.
func (d Deployment) Done() bool {
	return len(d.OldReplicaSets()) == 0 && deployments.Complete(d.Rollout.Deployment, d.Rollout.Deployment.Status)
}

// Fresh implements Rollout.
func (d Deployment) Fresh() bool {
	newRS := d.UpdateRevision()
	return newRS != nil && newRS.Status.Replicas == 0
}

// Overdue implements Rollout.
func (d Deployment) Overdue() bool { return deployments.Overdue(d.Rollout.Deployment) }
