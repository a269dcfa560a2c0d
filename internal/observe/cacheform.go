package observe

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
)

// CacheForm decides what a cache keeps of the objects it watches. Its methods App, Pod and Namespace are the cache's
// transforms (client-go/tools/cache, TransformFunc).
//
// A user may fill a namespace with objects. That must not fill the memory of the manager, which all namespaces share.
// So the cache keeps workloads, their revisions and pods whole only in namespaces where they may be managed, and keeps no
// large object whole. It keeps the other objects as outlines. A Reader with Stores reads from the API server what the
// cache has as an outline, and CacheForm remembers it. So what CacheForm knows of namespaces need not always be right.
type CacheForm struct {
	excluded Excluded
	// live reads the API server itself.
	live client.Reader

	lock    sync.RWMutex
	managed map[string]bool
	// kept has, by namespace, the objects that are in memory whole, and all is the size of all of them.
	kept map[string]*share
	all  int
	// largest has, by namespace, the size as it was sent of the largest pod that was seen, if that was large.
	largest map[string]int
}

const (
	// mostKept bounds the total size of the objects of one namespace that are in memory whole. It is several times the size of
	// thousands of pods.
	mostKept = 128 << 20
	// mostOfAll bounds the size of the objects of all namespaces that are in memory whole. A container has 1 GiB.
	mostOfAll = 384 << 20
)

// share is the part of the memory that one namespace has.
type share struct {
	size int // of all objects
	of   map[types.UID]held
}

// held is an object that is in memory whole.
type held struct {
	size int
	// read is the object as the API server has sent it, if the cache has only its outline.
	read client.Object
}

// NewCacheForm returns a CacheForm that knows which namespaces have Stayput's label now. Otherwise the cache would keep
// only outlines of all objects that it lists before their namespace.
func NewCacheForm(ctx context.Context, live Reader) (*CacheForm, error) {
	k := &CacheForm{excluded: live.ExcludedNamespaces, live: live.Reader,
		managed: map[string]bool{}, kept: map[string]*share{}, largest: map[string]int{}}
	var list corev1.NamespaceList
	if err := live.List(ctx, &list, client.HasLabels{inplace.LabelUpdate}); err != nil {
		return nil, fmt.Errorf("list labelled namespaces: %w", err)
	}
	for i := range list.Items {
		k.note(&list.Items[i])
	}
	return k, nil
}

// Namespace transforms a namespace, and notes whether workloads in it may be managed.
func (k *CacheForm) Namespace(object any) (any, error) {
	namespace, ok := object.(*corev1.Namespace)
	if !ok {
		return object, nil
	}
	namespace.ManagedFields = nil
	k.note(namespace)
	return namespace, nil
}

func (k *CacheForm) note(namespace *corev1.Namespace) {
	k.lock.Lock()
	defer k.lock.Unlock()
	if k.excluded.Manages(namespace) {
		k.managed[namespace.Name] = true
	} else {
		delete(k.managed, namespace.Name)
	}
}

func (k *CacheForm) manages(namespace string) bool {
	k.lock.RLock()
	defer k.lock.RUnlock()
	return k.managed[namespace]
}

// App transforms a workload, or an object that holds a revision. It makes outlines of ControllerRevisions of other
// kinds of workloads.
func (k *CacheForm) App(object any) (any, error) {
	app, ok := object.(client.Object)
	if !ok {
		return object, nil
	}
	foreign := controllerRevisions.is(app) && !isOf(app)
	return k.keep(app, !foreign && k.manages(app.GetNamespace())), nil
}

// Pod transforms a pod. It keeps pods whole on which Stayput has left something to do, in whatever namespace: updates fall back where the
// label is removed.
func (k *CacheForm) Pod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	k.measure(pod)
	if isCrowded(pod) {
		k.forget(pod)
		return outlineOfPod(pod, 0), nil
	}
	touched := readiness.HasMarks(pod) || podstate.IsPrePullPod(pod) || podstate.MayAnswer(pod, inplace.ModeNone)
	return k.keep(pod, touched || k.manages(pod.Namespace)), nil
}

// measure notes the size of a pod. A namespace that had a large pod is taken for one that has, as long as it exists.
func (k *CacheForm) measure(pod *corev1.Pod) {
	size := pod.Size()
	if size <= large {
		return
	}
	k.lock.Lock()
	defer k.lock.Unlock()
	k.largest[pod.Namespace] = max(size, k.largest[pod.Namespace])
}

// largestPod returns the size of the largest pod that was seen in the namespace, as it was sent; 0 if none was large, or if k is nil.
func (k *CacheForm) largestPod(namespace string) int {
	if k == nil {
		return 0
	}
	k.lock.RLock()
	defer k.lock.RUnlock()
	return k.largest[namespace]
}

// keep returns the object, or its outline. An outline stays one: client-go transforms twice what it lists as a stream.
func (k *CacheForm) keep(object client.Object, wanted bool) client.Object {
	if _, isOutline := outlineSize(object); isOutline {
		return object
	}
	trim(object)
	k.forget(object)
	if size := sizeOf(object); !wanted || size > large || !k.hold(object, held{size: size}) {
		return outlineOf(object, size)
	}
	return object
}

// recall returns the whole object for an outline; nil if it was not read, or if its version is not that of the outline.
func (k *CacheForm) recall(outline client.Object) client.Object {
	k.lock.RLock()
	defer k.lock.RUnlock()
	of := k.kept[outline.GetNamespace()]
	if of == nil {
		return nil
	}
	read := of.of[outline.GetUID()].read
	if read == nil || read.GetResourceVersion() != outline.GetResourceVersion() {
		return nil
	}
	return read
}

// remember holds an object of which the cache has only the outline, if it fits, until the cache gets another version.
func (k *CacheForm) remember(read client.Object) {
	k.forget(read)
	k.hold(read, held{sizeOf(read), read})
}

// room returns how much more of the namespace can be in memory whole. The caller has the lock.
func (k *CacheForm) room(namespace string) int {
	used := 0
	if of := k.kept[namespace]; of != nil {
		used = of.size
	}
	return min(mostKept-used, mostOfAll-k.all)
}

// fits reports whether as much more of the namespace can be in memory whole.
func (k *CacheForm) fits(namespace string, size int) bool {
	k.lock.RLock()
	defer k.lock.RUnlock()
	return size <= k.room(namespace)
}

// hold counts the object, if it can be in memory whole beside the other objects of its namespace, and of all namespaces.
func (k *CacheForm) hold(object client.Object, one held) bool {
	k.lock.Lock()
	defer k.lock.Unlock()
	if one.size > k.room(object.GetNamespace()) {
		return false
	}
	of := k.kept[object.GetNamespace()]
	if of == nil {
		of = &share{of: map[types.UID]held{}}
		k.kept[object.GetNamespace()] = of
	}
	of.of[object.GetUID()] = one
	of.size += one.size
	k.all += one.size
	return true
}

// forget no longer counts the object.
func (k *CacheForm) forget(object client.Object) {
	k.lock.Lock()
	defer k.lock.Unlock()
	of := k.kept[object.GetNamespace()]
	if of == nil {
		return
	}
	size := of.of[object.GetUID()].size
	of.size -= size
	k.all -= size
	if delete(of.of, object.GetUID()); len(of.of) == 0 {
		delete(k.kept, object.GetNamespace())
	}
}

// OnDelete is called when a cached object was deleted. It no longer counts.
func (k *CacheForm) OnDelete(object any) {
	if missed, is := object.(toolscache.DeletedFinalStateUnknown); is {
		object = missed.Obj
	}
	if gone, is := object.(client.Object); is {
		k.forget(gone)
	}
	if namespace, is := object.(*corev1.Namespace); is {
		k.lock.Lock()
		defer k.lock.Unlock()
		delete(k.largest, namespace.Name)
		if left := k.kept[namespace.Name]; left != nil { // what was read while it was deleted
			k.all -= left.size
			delete(k.kept, namespace.Name)
		}
	}
}
