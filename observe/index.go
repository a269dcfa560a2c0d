package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/readiness"
)

// indexController is the cache's index of revisions and pods by the UID of their controller.
const indexController = "metadata.controller"

// indexClosed is the cache's index of the pods whose gates are closed.
const indexClosed = "stayput.dev/closed"

// Index registers the indexes that a Reader with Indexed set lists by. It has to be called before the cache starts.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	controlled := []client.Object{&corev1.Pod{}}
	for _, of := range revisionTypes() {
		controlled = append(controlled, of.Object())
	}
	for _, object := range controlled {
		if err := indexer.IndexField(ctx, object, indexController, controllerUID); err != nil {
			return fmt.Errorf("index %T by controller: %w", object, err)
		}
	}
	if err := indexer.IndexField(ctx, &corev1.Pod{}, indexClosed, closed); err != nil {
		return fmt.Errorf("index pods by gate: %w", err)
	}
	return nil
}

func closed(object client.Object) []string {
	if pod, ok := object.(*corev1.Pod); ok && readiness.Closed(pod) {
		return []string{"true"}
	}
	return nil
}

// ClosedPods reads the pods whose gates are closed, wherever they are. From a cache they are its own objects, and found without looking
// at all the others.
func (r Reader) ClosedPods(ctx context.Context) ([]*corev1.Pod, error) {
	var list corev1.PodList
	options := r.shared()
	if r.Indexed {
		options = append(options, client.MatchingFields{indexClosed: "true"})
	}
	if err := r.List(ctx, &list, options...); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if readiness.Closed(&list.Items[i]) {
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
