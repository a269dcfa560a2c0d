package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
)

// indexController is the cache's index of revisions and pods by the UID of their controller.
const indexController = "metadata.controller"

// Index registers the index that a Reader with Indexed set lists by. It has to be called before the cache starts.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	for _, object := range []client.Object{&inplace.ReplicaSet{}, &inplace.ControllerRevision{}, &corev1.Pod{}} {
		if err := indexer.IndexField(ctx, object, indexController, controllerUID); err != nil {
			return fmt.Errorf("index %T by controller: %w", object, err)
		}
	}
	return nil
}

func controllerUID(object client.Object) []string {
	if uid := controllerOf(object); uid != "" {
		return []string{string(uid)}
	}
	return nil
}
