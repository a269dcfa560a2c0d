package observe

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
)

// Namespace is everything of workloads in one namespace. Its rollouts have revisions and pods, and nothing else: all that Wake needs.
type Namespace struct {
	Pods       []corev1.Pod
	Rollouts   []*inplace.Rollout
	DaemonSets []*inplace.DaemonRollout
}

// Namespace reads a namespace with one list of each kind, however many workloads it has.
func (r Reader) Namespace(ctx context.Context, name string) (Namespace, error) {
	var (
		pods        corev1.PodList
		deployments inplace.DeploymentList
		replicaSets inplace.ReplicaSetList
		daemonSets  inplace.DaemonSetList
		revisions   inplace.ControllerRevisionList
		namespace   corev1.Namespace
	)
	if err := r.Get(ctx, types.NamespacedName{Name: name}, &namespace); client.IgnoreNotFound(err) != nil {
		return Namespace{}, fmt.Errorf("read namespace %s: %w", name, err)
	}
	for _, list := range []client.ObjectList{&pods, &deployments, &replicaSets, &daemonSets, &revisions} {
		if err := r.List(ctx, list, client.InNamespace(name)); err != nil {
			return Namespace{}, fmt.Errorf("list %T of namespace %s: %w", list, name, err)
		}
	}
	podsOf, now := byController(pods.Items), time.Now()
	read := Namespace{Pods: pods.Items}
	replicaSetsOf := byController(replicaSets.Items)
	for i := range deployments.Items {
		deployment := &deployments.Items[i]
		rollout := &inplace.Rollout{Deployment: deployment, ReplicaSets: replicaSetsOf[deployment.UID],
			Mode: inplace.ModeOf(namespace.Labels, deployment.Labels), Now: now}
		for _, replicaSet := range rollout.ReplicaSets {
			rollout.Pods = append(rollout.Pods, podsOf[replicaSet.UID]...)
		}
		read.Rollouts = append(read.Rollouts, rollout)
	}
	revisionsOf := byController(revisions.Items)
	for i := range daemonSets.Items {
		daemonSet := &daemonSets.Items[i]
		read.DaemonSets = append(read.DaemonSets, &inplace.DaemonRollout{DaemonSet: daemonSet, Revisions: revisionsOf[daemonSet.UID],
			Pods: podsOf[daemonSet.UID], Mode: inplace.ModeOf(namespace.Labels, daemonSet.Labels), Now: now})
	}
	return read, nil
}

// byController sorts the items by the UID of what controls them.
func byController[T any, P object[T]](items []T) map[types.UID][]P {
	sorted := map[types.UID][]P{}
	for i := range items {
		item := P(&items[i])
		if owner := metav1.GetControllerOfNoCopy(item); owner != nil {
			sorted[owner.UID] = append(sorted[owner.UID], item)
		}
	}
	return sorted
}
