package observe

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/prepull"
)

// prePullPodsOf returns the pre-pull pods of a workload. The objects with those UIDs control them: the workload itself,
// or its revisions.
func (r Reader) prePullPodsOf(ctx context.Context, workload client.Object, controllers ...types.UID) (prepull.Pulling, error) {
	found := prepull.Pulling{WaitImage: r.Waiter}
	candidates, err := r.maybePrePullPods(ctx, workload, controllers)
	if err != nil {
		return found, fmt.Errorf("list pre-pull pods of %s %s: %w", kindOf(workload), client.ObjectKeyFromObject(workload), err)
	}
	for _, pod := range candidates {
		if isPrePullPodOf(pod, workload, controllers) {
			found.PrePullPods = append(found.PrePullPods, pod)
		}
	}
	return found, nil
}

// maybePrePullPods returns pods, among them all pre-pull pods of the workload.
func (r Reader) maybePrePullPods(ctx context.Context, workload client.Object, controllers []types.UID) ([]*corev1.Pod, error) {
	if r.Stores.present() {
		return r.Stores.controlledBy(workload.GetNamespace(), controllers)
	}
	every := func(*corev1.Pod) bool { return true }
	labelled := client.MatchingLabels{inplace.LabelPrePull: string(workload.GetUID())}
	pods, _, err := list(ctx, r, &corev1.PodList{}, every, client.InNamespace(workload.GetNamespace()), labelled)
	return pods, err
}

func isPrePullPodOf(pod *corev1.Pod, workload client.Object, controllers []types.UID) bool {
	return pod.Labels[inplace.LabelPrePull] == string(workload.GetUID()) && slices.Contains(controllers, controllerOf(pod))
}

// NodesOf returns the nodes that the pods are on. It leaves out nodes that do not exist.
func (r Reader) NodesOf(ctx context.Context, pods []*corev1.Pod) ([]*corev1.Node, error) {
	asked := map[string]bool{"": true}
	var nodes []*corev1.Node
	for _, pod := range pods {
		name := pod.Spec.NodeName
		if asked[name] {
			continue
		}
		asked[name] = true
		node := &corev1.Node{}
		err := r.Get(ctx, types.NamespacedName{Name: name}, node, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read node %s: %w", name, err)
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// nodes returns all nodes. The result is never nil: a cluster without nodes has an empty list.
func (r Reader) nodes(ctx context.Context) ([]*corev1.Node, error) {
	if r.Stores.present() {
		return r.Stores.nodes.all()
	}
	var list corev1.NodeList
	if err := r.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	nodes := make([]*corev1.Node, 0, len(list.Items))
	for i := range list.Items {
		nodes = append(nodes, &list.Items[i])
	}
	return nodes, nil
}

// Quotas returns the ResourceQuotas of a namespace; never nil. They are in no cache.
func (r Reader) Quotas(ctx context.Context, namespace string) ([]corev1.ResourceQuota, error) {
	var list corev1.ResourceQuotaList
	if err := r.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list ResourceQuotas of namespace %s: %w", namespace, err)
	}
	return append([]corev1.ResourceQuota{}, list.Items...), nil
}
