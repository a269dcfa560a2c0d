package controller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
)

// deploymentKind is what Deployments have of their own besides their rollouts.
var deploymentKind = kind{
	workload: "Deployment", revision: "ReplicaSet",
	workloads: func() client.ObjectList { return &inplace.DeploymentList{} },
	revisions: func() client.ObjectList { return &inplace.ReplicaSetList{} },
	finished: func(object runtime.Object) bool {
		deployment, ok := object.(*inplace.Deployment)
		return ok && isComplete(deployment)
	},
}

// deploymentReader reads a Deployment with its ReplicaSets and pods, nil if it is gone; see observe.Reader.
type deploymentReader interface {
	Rollout(ctx context.Context, key types.NamespacedName) (*inplace.Rollout, error)
}

// deployments is the source of Deployments.
func deployments(reader deploymentReader) source {
	return func(ctx context.Context, key types.NamespacedName) (rollout, error) {
		read, err := reader.Rollout(ctx, key)
		if read == nil || err != nil {
			return nil, err
		}
		return deployment{read}, nil
	}
}

// deployment is the rollout of a Deployment.
type deployment struct{ *inplace.Rollout }

func (d deployment) scene() scene {
	s := scene{workload: d.Deployment, pods: d.Pods, pullers: d.Pull.Pullers, mode: d.Mode, settings: d.Settings, now: d.Now}
	for _, replicaSet := range d.ReplicaSets {
		s.revisions = append(s.revisions, replicaSet)
	}
	return s
}

func (d deployment) setEndpoints(endpoints inplace.Endpoints) { d.Endpoints = endpoints }

func (d deployment) setAhead(ahead inplace.Ahead) { d.Ahead = ahead }

func (d deployment) setBeats(beats inplace.Beats) { d.Beats = beats }

func (d deployment) pulling() *inplace.Pulling { return &d.Pull }

func (d deployment) rehearsal() *inplace.Rehearsal { return &d.Rehearsal }

func (d deployment) done() bool { return len(d.Sources()) == 0 && isComplete(d.Deployment) }

func (d deployment) fresh(plan inplace.Plan) bool { return plan.Verdict.Target.Status.Replicas == 0 }

// overdue tells whether the status says that the rollout has made no progress for too long.
func (d deployment) overdue() bool {
	for _, c := range d.Deployment.Status.Conditions {
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
