package observe

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/controllerrevisions"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/engine"
)

// namespaced is what all rollouts in a namespace have in common.
type namespaced struct {
	metav1.ObjectMeta
	excluded Excluded
	// What follows is by the UID of its controller.
	pods        map[types.UID][]*corev1.Pod
	replicaSets map[types.UID][]*apps.ReplicaSet
	revisions   map[types.UID][]*apps.ControllerRevision
	now         time.Time
}

// Nudgers returns the rollouts of the workloads of a namespace. They have revisions and pods, and nothing else: Nudge
// needs nothing else. It makes one list of each type, no matter how many workloads there are.
func (r Reader) Nudgers(ctx context.Context, name string) ([]engine.Rollout, error) {
	var namespace corev1.Namespace
	if err := r.Get(ctx, types.NamespacedName{Name: name}, &namespace); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read namespace %s: %w", name, err)
	}
	var (
		pods        corev1.PodList
		replicaSets apps.ReplicaSetList
		revisions   apps.ControllerRevisionList
	)
	if err := r.listIn(ctx, name, &pods, &replicaSets, &revisions); err != nil {
		return nil, err
	}
	of := namespaced{metav1.ObjectMeta{Name: name, Labels: namespace.Labels}, r.ExcludedNamespaces,
		byController(pods.Items), byController(replicaSets.Items), byController(revisions.Items), time.Now()}
	var all []engine.Rollout
	for _, kind := range Kinds {
		add := func(workload client.Object) { all = append(all, of.rollout(kind, workload)) }
		if err := Each(ctx, r, kind.Workload.List(), add, client.InNamespace(name)); err != nil {
			return nil, fmt.Errorf("namespace %s: %w", name, err)
		}
	}
	return all, nil
}

// listIn fills the lists with the objects of the namespace.
func (r Reader) listIn(ctx context.Context, namespace string, lists ...client.ObjectList) error {
	for _, list := range lists {
		if err := r.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("list %ss of namespace %s: %w", kindOf(list), namespace, err)
		}
	}
	return nil
}

func (of namespaced) rollout(kind Kind, workload client.Object) engine.Rollout {
	seen := engine.Snapshot{Mode: of.excluded.modeOf(kind, &of, workload.GetLabels()), Now: of.now}
	deployment, is := workload.(*apps.Deployment)
	if !is {
		seen.Pods = of.pods[workload.GetUID()]
		return &controllerrevisions.Rollout{Kind: kind.Of(workload), Revisions: of.revisions[workload.GetUID()], Seen: seen}
	}
	replicaSets := of.replicaSets[deployment.UID]
	for _, replicaSet := range replicaSets {
		seen.Pods = append(seen.Pods, of.pods[replicaSet.UID]...)
	}
	return &deployments.Rollout{Deployment: deployment, ReplicaSets: replicaSets, Seen: seen}
}

// byController returns the items by the UID of their controller.
func byController[T any, P object[T]](items []T) map[types.UID][]P {
	sorted := map[types.UID][]P{}
	for i := range items {
		item := P(&items[i])
		if uid := controllerOf(item); uid != "" {
			sorted[uid] = append(sorted[uid], item)
		}
	}
	return sorted
}
