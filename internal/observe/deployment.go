package observe

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/engine"
)

// Deployments is the kind whose revisions are ReplicaSets.
var Deployments = Kind{
	Workload: typeOf("Deployment", func() client.ObjectList { return &apps.DeploymentList{} },
		func(_ *apps.Deployment, form metav1.ObjectMeta) *apps.Deployment {
			return &apps.Deployment{ObjectMeta: form}
		}),
	Revision: typeOf("ReplicaSet", func() client.ObjectList { return &apps.ReplicaSetList{} },
		outlineOfReplicaSet),
	Scaled:  true,
	nudgers: nudgersOfDeployments,
}

// outlineOfReplicaSet returns an outline that has the numbers of replicas, in spec and status.
func outlineOfReplicaSet(rs *apps.ReplicaSet, meta metav1.ObjectMeta) *apps.ReplicaSet {
	form := &apps.ReplicaSet{ObjectMeta: meta, Status: rs.Status}
	form.Spec.Replicas, form.Status.Conditions = rs.Spec.Replicas, nil
	return form
}

// Rollout returns the Deployment with its ReplicaSets and pods, the nodes of these pods, and its pre-pull pods. It
// returns nil if there is no such Deployment.
func (r Reader) Rollout(ctx context.Context, key types.NamespacedName) (*deployments.Rollout, error) {
	deployment, err := r.Deployment(ctx, key)
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
	deployment, err := r.DeploymentOf(ctx, rs)
	if deployment == nil || err != nil {
		return nil, err
	}
	return r.RolloutOf(ctx, deployment)
}

// Deployment returns one Deployment; nil if there is none.
func (r Reader) Deployment(ctx context.Context, key types.NamespacedName) (*apps.Deployment, error) {
	return find[apps.Deployment](ctx, r, key)
}

// ReplicaSet returns one ReplicaSet; nil if there is none.
func (r Reader) ReplicaSet(ctx context.Context, key types.NamespacedName) (*apps.ReplicaSet, error) {
	return find[apps.ReplicaSet](ctx, r, key)
}

// DeploymentOf returns the Deployment that controls the ReplicaSet. It returns nil if there is none with the UID in the
// owner reference.
func (r Reader) DeploymentOf(ctx context.Context, rs *apps.ReplicaSet) (*apps.Deployment, error) {
	return findController[apps.Deployment](ctx, r, rs, "Deployment")
}

// ReplicaSetOf returns the ReplicaSet that controls the pod. It returns nil if there is none with the UID in the owner
// reference.
func (r Reader) ReplicaSetOf(ctx context.Context, pod *corev1.Pod) (*apps.ReplicaSet, error) {
	return findController[apps.ReplicaSet](ctx, r, pod, "ReplicaSet")
}

// RolloutOf returns the rollout of the given Deployment, without nodes and pre-pull pods. The Deployment need not be
// stored yet.
func (r Reader) RolloutOf(ctx context.Context, deployment *apps.Deployment) (*deployments.Rollout, error) {
	seen, err := r.snapshotOf(ctx, Deployments, deployment)
	if err != nil {
		return nil, err
	}
	rollout := &deployments.Rollout{Deployment: deployment, Seen: seen}
	of := selected{deployment, deployment.Spec.Selector}
	replicaSets, sets, err := owned[apps.ReplicaSet](ctx, r, &apps.ReplicaSetList{}, of, []types.UID{deployment.UID}, r.Stores.shared()...)
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

// nudgersOfDeployments returns the rollouts of the Deployments of a namespace.
func nudgersOfDeployments(ctx context.Context, r Reader, of namespaced) ([]Nudger, error) {
	var (
		list        apps.DeploymentList
		replicaSets apps.ReplicaSetList
	)
	if err := of.list(ctx, r, &list, &replicaSets); err != nil {
		return nil, err
	}
	replicaSetsOf := byController(replicaSets.Items)
	var all []Nudger
	for i := range list.Items {
		deployment := &list.Items[i]
		rollout := &deployments.Rollout{
			Deployment:  deployment,
			ReplicaSets: replicaSetsOf[deployment.UID],
			Seen:        engine.Snapshot{Mode: of.modeOf(deployment), Now: of.now},
		}
		for _, replicaSet := range rollout.ReplicaSets {
			rollout.Seen.Pods = append(rollout.Seen.Pods, of.pods[replicaSet.UID]...)
		}
		all = append(all, rollout)
	}
	return all, nil
}
