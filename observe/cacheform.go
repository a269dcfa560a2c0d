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
)

// CacheForm decides what a cache keeps of the objects it watches: its methods are the cache's transforms (client-go/tools/cache,
// TransformFunc). Anybody may fill his namespace, and must not fill the memory of everybody's manager with it. So workloads and their
// revisions are kept whole only where they may be managed, and nothing that is large is. A Reader with Stores reads from the API
// server what was kept as a stub; what Keep knows of namespaces therefore only has to be right most of the time.
type CacheForm struct {
	excluded Excluded

	lock    sync.RWMutex
	managed map[string]bool
	// kept is what is kept whole of each namespace.
	kept map[string]*share
}

// mostKept bounds the text of what is kept whole of one namespace: several times what thousands of pods have.
const mostKept = 64 << 20

// share is a namespace's part of the memory.
type share struct {
	text int
	of   map[types.UID]int
}

// NewCacheForm reads which namespaces have our label: their objects must not all come as stubs only because they come before their namespace.
func NewCacheForm(ctx context.Context, live Reader) (*CacheForm, error) {
	k := &CacheForm{excluded: live.ExcludedNamespaces, managed: map[string]bool{}, kept: map[string]*share{}}
	var list corev1.NamespaceList
	if err := live.List(ctx, &list, client.HasLabels{inplace.LabelUpdate}); err != nil {
		return nil, fmt.Errorf("list labelled namespaces: %w", err)
	}
	for i := range list.Items {
		k.note(&list.Items[i])
	}
	return k, nil
}

// Namespace notes whether anything in it may be managed.
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
	if k.excluded.modeOf(namespace, nil).Manages() {
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

// App keeps a workload, or what holds revisions. ControllerRevisions of other kinds of workloads are nobody's concern.
func (k *CacheForm) App(object any) (any, error) {
	app, ok := object.(client.Object)
	if !ok {
		return object, nil
	}
	foreign := controllerRevisions.is(app) && !isOf(app)
	return k.keep(app, !foreign && k.manages(app.GetNamespace())), nil
}

// Pod keeps a pod, wherever it is: a gate must be opened in any namespace.
func (k *CacheForm) Pod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	if isCrowded(pod) {
		k.forget(pod)
		return outlineOfPod(pod, sizeOf(pod)), nil
	}
	return k.keep(pod, true), nil
}

func (k *CacheForm) keep(object client.Object, wanted bool) client.Object {
	trim(object)
	size := sizeOf(object)
	if !wanted || size > large {
		k.forget(object)
		return outlineOf(object, size)
	}
	if !k.fits(object, size) {
		return outlineOf(object, size)
	}
	return object
}

// fits reports whether the object can be kept whole beside what else there is of its namespace.
func (k *CacheForm) fits(object client.Object, size int) bool {
	k.forget(object)
	k.lock.Lock()
	defer k.lock.Unlock()
	of := k.kept[object.GetNamespace()]
	if of == nil {
		of = &share{of: map[types.UID]int{}}
		k.kept[object.GetNamespace()] = of
	}
	if of.text+size > mostKept {
		return false
	}
	of.of[object.GetUID()] = size
	of.text += size
	return true
}

// forget makes room where the object was.
func (k *CacheForm) forget(object client.Object) {
	k.lock.Lock()
	defer k.lock.Unlock()
	of := k.kept[object.GetNamespace()]
	if of == nil {
		return
	}
	of.text -= of.of[object.GetUID()]
	if delete(of.of, object.GetUID()); len(of.of) == 0 {
		delete(k.kept, object.GetNamespace())
	}
}

// OnAdd implements cache.ResourceEventHandler of client-go.
func (k *CacheForm) OnAdd(any, bool) {}

// OnUpdate implements cache.ResourceEventHandler of client-go.
func (k *CacheForm) OnUpdate(any, any) {}

// OnDelete implements cache.ResourceEventHandler of client-go: what is gone takes no room.
func (k *CacheForm) OnDelete(object any) {
	if missed, is := object.(toolscache.DeletedFinalStateUnknown); is {
		object = missed.Obj
	}
	if gone, is := object.(client.Object); is {
		k.forget(gone)
	}
}
