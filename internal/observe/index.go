package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/concurrency"
)

// indexController is the cache's index of revisions by the UID of their controller. For pods see Stores.
const indexController = "metadata.controller"

// fieldNode is the only field besides name and namespace that Stayput uses to select pods at the API server.
const fieldNode = "spec.nodeName"

// Index registers the indexes by which a Reader with Stores lists. The caller must call it before the cache starts.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	for _, of := range revisionTypes() {
		if err := indexer.IndexField(ctx, of.Object(), indexController, controllerUID); err != nil {
			return fmt.Errorf("index %T by controller: %w", of.Object(), err)
		}
	}
	return nil
}

// PodsOn returns the pods on that node. With Stores the pods are the cache's own objects, and an index finds them without
// a look at all other pods.
func (r Reader) PodsOn(ctx context.Context, node string) ([]*corev1.Pod, error) {
	return r.podsThat(ctx, podsByNode, node, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == node })
}

// RestartingPods returns the pods of all namespaces that concurrency.MayCount passes, in the same way. With Stores, IndexRestarting must
// have been called.
func (r Reader) RestartingPods(ctx context.Context) ([]*corev1.Pod, error) {
	return r.podsThat(ctx, podsRestarting, restarting, concurrency.MayCount)
}

// VersionOf returns the resourceVersion of the pod as the reader has it; empty if the pod is gone.
func (r Reader) VersionOf(ctx context.Context, key types.NamespacedName, uid types.UID) (string, error) {
	pod := &corev1.Pod{}
	if err := r.Get(ctx, key, pod, client.UnsafeDisableDeepCopy); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if pod.UID != uid {
		return "", nil
	}
	return pod.ResourceVersion, nil
}

// podsThat returns the pods that have the key in the index. Without Stores it returns the pods for which the predicate
// is true, which are the same.
func (r Reader) podsThat(ctx context.Context, index, key string, is func(*corev1.Pod) bool) ([]*corev1.Pod, error) {
	if r.Stores.present() {
		return r.Stores.pods.by(index, key)
	}
	var list corev1.PodList
	if err := r.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if is(&list.Items[i]) {
			pods = append(pods, &list.Items[i])
		}
	}
	return pods, nil
}

func controllerUID(object client.Object) []string {
	if uid := controllerOf(object); uid != "" {
		return []string{string(uid)}
	}
	return nil
}
