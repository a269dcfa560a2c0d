package observe

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
)

// Rollout returns the Deployment with its ReplicaSets and pods, the nodes of these pods, and its pre-pull pods. It
// returns nil if there is no such Deployment.
func (r Reader) Rollout(ctx context.Context, key types.NamespacedName) (*deployments.Rollout, error) {
	deployment, err := Find[apps.Deployment](ctx, r, key)
	if deployment == nil || err != nil {
		return nil, err
	}
	rollout, err := r.RolloutOf(ctx, deployment)
	if err != nil {
		return nil, err
	}
	if !r.nodeless {
		if rollout.Seen.Nodes, err = r.NodesOf(ctx, rollout.Seen.Pods); err != nil {
			return nil, err
		}
	}
	rollout.Seen.Pull, err = r.prePullPodsOf(ctx, deployment, deployment.UID)
	return rollout, err
}

// RolloutOfReplicaSet returns the rollout of the Deployment that controls the ReplicaSet, without nodes and pre-pull
// pods. It returns nil if there is none.
func (r Reader) RolloutOfReplicaSet(ctx context.Context, rs *apps.ReplicaSet) (*deployments.Rollout, error) {
	deployment, err := as[*apps.Deployment](Deployments.Workload.controllerOf(ctx, r, rs))
	if deployment == nil || err != nil {
		return nil, err
	}
	return r.RolloutOf(ctx, deployment)
}

// ReplicaSetOf returns the ReplicaSet that controls the pod. It returns nil if there is none with the UID in the owner
// reference.
func (r Reader) ReplicaSetOf(ctx context.Context, pod *corev1.Pod) (*apps.ReplicaSet, error) {
	return as[*apps.ReplicaSet](replicaSets.controllerOf(ctx, r, pod))
}

// RolloutOf returns the rollout of the given Deployment, without nodes and pre-pull pods. The Deployment need not be
// stored yet.
func (r Reader) RolloutOf(ctx context.Context, deployment *apps.Deployment) (*deployments.Rollout, error) {
	seen, err := Deployments.snapshotOf(ctx, r, deployment)
	if err != nil {
		return nil, err
	}
	rollout := &deployments.Rollout{Deployment: deployment, Seen: seen}
	of := selected{deployment, deployment.Spec.Selector}
	replicaSets, sets, err := owned[apps.ReplicaSet](
		ctx, r, &apps.ReplicaSetList{}, of, []types.UID{deployment.UID}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	rollout.ReplicaSets, rollout.Seen.Unread = replicaSets, sets.unread()
	if !r.podless {
		pods, load, err := r.podsOf(ctx, of, uids(replicaSets))
		if err != nil {
			return nil, err
		}
		rollout.Seen.Pods, rollout.Seen.Unread = pods, cmp.Or(rollout.Seen.Unread, load.unread())
	}
	rollout.Seen.Now = time.Now()
	return rollout, nil
}
