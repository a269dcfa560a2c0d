package observe

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/concurrency"
)

const (
	// podsByController is the index of pods by the namespace and the UID of their controller.
	podsByController = "controller"
	// podsByNode is the index of pods by the node they are on.
	podsByNode = "node"
	// podsRestarting is the index of the pods that may count against limits on how many restart at a time. It exists only where there are
	// limits.
	podsRestarting = "restarting"
	restarting     = "restarting"
)

// Stores return the pods and nodes of a cache themselves. Callers must not change them. A list of the cache would copy
// each object, and such lists of pods were half of all memory that managers allocated.
type Stores struct {
	pods  store[*corev1.Pod]
	nodes store[*corev1.Node]
}

// present reports whether a Reader with these Stores reads a cache.
func (s *Stores) present() bool { return s != nil }

// StoresOf returns the Stores of the informers' cache, and adds the indexes by which they find pods. The caller must
// call it before the cache starts.
func StoresOf(ctx context.Context, informers cache.Informers) (*Stores, error) {
	pods, err := storeOf[*corev1.Pod](ctx, informers, &corev1.Pod{}, indexersOfPods())
	if err != nil {
		return nil, err
	}
	nodes, err := storeOf[*corev1.Node](ctx, informers, &corev1.Node{}, nil)
	return &Stores{pods, nodes}, err
}

func indexersOfPods() toolscache.Indexers {
	return toolscache.Indexers{podsByController: indexOf(keyOfController), podsByNode: indexOf(nodeOf)}
}

func indexOf(keys func(*corev1.Pod) []string) toolscache.IndexFunc {
	return func(object any) ([]string, error) {
		pod, is := object.(*corev1.Pod)
		if !is {
			return nil, fmt.Errorf("%T is no pod", object)
		}
		return keys(pod), nil
	}
}

// IndexRestarting adds the index that RestartingPods needs. The caller must call it before the cache starts.
func (s *Stores) IndexRestarting() error {
	return s.pods.AddIndexers(toolscache.Indexers{podsRestarting: indexOf(func(pod *corev1.Pod) []string {
		if concurrency.MayCount(pod) {
			return []string{restarting}
		}
		return nil
	})})
}

// controlled returns the key in podsByController. It has the namespace, because a pod does not belong to a controller
// in another namespace, even if its owner reference has that controller's UID.
func controlled(namespace string, controller types.UID) string {
	return namespace + "/" + string(controller)
}

func keyOfController(pod *corev1.Pod) []string {
	if uid := controllerOf(pod); uid != "" {
		return []string{controlled(pod.Namespace, uid)}
	}
	return nil
}

func nodeOf(pod *corev1.Pod) []string {
	if pod.Spec.NodeName == "" {
		return nil
	}
	return []string{pod.Spec.NodeName}
}

// controlledBy returns the pods that those controllers control in the namespace.
func (s *Stores) controlledBy(namespace string, controllers []types.UID) ([]*corev1.Pod, error) {
	var all []*corev1.Pod
	for _, uid := range controllers {
		pods, err := s.pods.by(podsByController, controlled(namespace, uid))
		if err != nil {
			return nil, err
		}
		all = append(all, pods...)
	}
	return all, nil
}

// store has the cache's objects of one type.
type store[P client.Object] struct {
	toolscache.Indexer
	synced func() bool
}

func storeOf[P client.Object](ctx context.Context, informers cache.Informers, empty P, indexers toolscache.Indexers) (store[P], error) {
	found, err := informers.GetInformer(ctx, empty, cache.BlockUntilSynced(false))
	if err != nil {
		return store[P]{}, fmt.Errorf("watch %T: %w", empty, err)
	}
	informer, is := found.(toolscache.SharedIndexInformer)
	if !is {
		return store[P]{}, fmt.Errorf("watch %T: %T hands out no objects", empty, found)
	}
	if err := informer.AddIndexers(indexers); err != nil {
		return store[P]{}, fmt.Errorf("index %T: %w", empty, err)
	}
	return store[P]{informer.GetIndexer(), informer.HasSynced}, nil
}

func (s store[P]) all() ([]P, error) { return s.typed(s.List()) }

func (s store[P]) by(index, key string) ([]P, error) {
	found, err := s.ByIndex(index, key)
	if err != nil {
		return nil, err
	}
	return s.typed(found)
}

// typed returns the objects as their type. It returns an error as long as the cache has not read all objects.
func (s store[P]) typed(objects []any) ([]P, error) {
	if !s.synced() {
		return nil, errors.New("the cache is still being filled")
	}
	all := make([]P, 0, len(objects))
	for _, object := range objects {
		one, is := object.(P)
		if !is {
			return nil, fmt.Errorf("the cache has a %T", object)
		}
		all = append(all, one)
	}
	return all, nil
}
