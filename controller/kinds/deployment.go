package kinds

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/observe"
)

// Deployments are updated by moving pods from one ReplicaSet to another.
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
		deployment, ok := workload.(*inplace.Deployment)
		return ok && isComplete(deployment)
	},
}

// DeploymentsBy is the Source of Deployments that are read like that.
func DeploymentsBy(read func(context.Context, types.NamespacedName) (*inplace.Rollout, error)) Source {
	return reading(read, func(read *inplace.Rollout) Rollout { return Deployment{read} })
}

// Deployment is the rollout of a Deployment.
type Deployment struct{ *inplace.Rollout }

// Scene implements Rollout.
func (d Deployment) Scene() Scene {
	return Scene{Workload: d.Rollout.Deployment, Revisions: objectsOf(d.ReplicaSets), Pods: d.Pods, Pullers: d.Pull.Pullers,
		Mode: d.Mode, Settings: d.Settings, Now: d.Now}
}

// Asks implements Rollout.
func (d Deployment) Asks() Asks {
	return Asks{Endpoints: &d.Endpoints, Ahead: &d.Ahead, Beats: &d.Beats, Pull: &d.Pull, Rehearsal: &d.Rehearsal}
}

// Done implements Rollout.
func (d Deployment) Done() bool { return len(d.Sources()) == 0 && isComplete(d.Rollout.Deployment) }

// Fresh implements Rollout.
func (d Deployment) Fresh(plan inplace.Plan) bool { return plan.Verdict.Target.Status.Replicas == 0 }

// Overdue tells whether the status says that the rollout has made no progress for too long.
func (d Deployment) Overdue() bool {
	for _, c := range d.Rollout.Deployment.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing {
			return c.Status == corev1.ConditionFalse && c.Reason == "ProgressDeadlineExceeded"
		}
	}
	return false
}

// isComplete is the native meaning of a finished rollout (pkg/controller/deployment/util, DeploymentComplete).
func isComplete(deployment *inplace.Deployment) bool {
	desired, status := ptr.Deref(deployment.Spec.Replicas, 1), deployment.Status
	return status.ObservedGeneration >= deployment.Generation &&
		status.UpdatedReplicas == desired && status.Replicas == desired && status.AvailableReplicas == desired
}
