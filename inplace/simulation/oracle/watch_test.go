package simulation

import (
	"cmp"
	"encoding/json"
	"slices"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/stayput/stayput/inplace/apps"
)

// delivers is a watch of any resource.
type delivers interface {
	deliver(n int)
	list()
	again()
}

// watch is an informer of Kubernetes on a store of the world. Its cache has the types of client-go, and lags.
type watch[T stored[T]] struct {
	cache.SharedIndexInformer // controllers call nothing of it but what follows
	seen                      *informer[T]
	index                     gated
	handlers                  []cache.ResourceEventHandler
	typed                     func(T) metav1.Object
}

func newWatch[T stored[T], N any, P interface {
	*N
	metav1.Object
}](p *process, number int, s *store[T]) *watch[T] {
	w := &watch[T]{seen: s.informer(), index: gated{Indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}), process: p, main: p.main == number, version: new(string)}}
	w.typed = func(object T) metav1.Object { return typed[N, P](object) }
	p.watches[number] = w
	return w
}

// typed returns the object with its type of client-go, as the API server sends it.
func typed[N any, P interface {
	*N
	metav1.Object
}](object metav1.Object) P {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	into := P(new(N))
	if err := json.Unmarshal(text, into); err != nil {
		panic(err)
	}
	if _, cluster := object.(*corev1.Node); !cluster {
		into.SetNamespace("shop")
	}
	return into
}

// list adds what the cache begins with.
func (w *watch[T]) list() {
	var notify []func()
	for _, object := range w.seen.list() {
		notify = append(notify, w.add(w.typed(object))...)
	}
	tell(notify)
}

// tell calls the handlers. A worker that gets a key from one of them waits for its turn before the next is called: whether a key comes once
// or twice must not be chance.
func tell(notify []func()) {
	for _, handle := range notify {
		handle()
		synctest.Wait()
	}
}

// deliver delivers so many changes. The cache has them all before a handler is called, as that of an informer may.
func (w *watch[T]) deliver(n int) {
	var notify []func()
	for _, event := range w.seen.advance(n) {
		var none T
		if event.new != none {
			notify = append(notify, w.add(w.typed(event.new))...)
		} else {
			notify = append(notify, w.remove("shop/"+event.name)...)
		}
	}
	tell(notify)
}

func (w *watch[T]) add(object metav1.Object) (notify []func()) {
	before, exists, _ := w.index.Indexer.Get(object)
	_ = w.index.Add(object) // never fails
	*w.index.version = object.GetResourceVersion()
	for _, handler := range w.handlers {
		if exists {
			notify = append(notify, func() { handler.OnUpdate(before, object) })
		} else {
			notify = append(notify, func() { handler.OnAdd(object, false) })
		}
	}
	return notify
}

// again is a resync: an event for each object, as it is.
func (w *watch[T]) again() {
	var notify []func()
	for _, object := range w.index.List() {
		for _, handler := range w.handlers {
			notify = append(notify, func() { handler.OnUpdate(object, object) })
		}
	}
	tell(notify)
}

func (w *watch[T]) remove(key string) (notify []func()) {
	before, exists, _ := w.index.Indexer.GetByKey(key)
	if !exists {
		return nil
	}
	_ = w.index.Delete(before) // never fails
	for _, handler := range w.handlers {
		notify = append(notify, func() { handler.OnDelete(before) })
	}
	return notify
}

func (w *watch[T]) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	w.handlers = append(w.handlers, handler)
	return nil, nil
}
func (w *watch[T]) HasSynced() bool                           { return true }
func (w *watch[T]) GetStore() cache.Store                     { return w.index }
func (w *watch[T]) GetIndexer() cache.Indexer                 { return w.index }
func (w *watch[T]) AddIndexers(indexers cache.Indexers) error { return w.index.AddIndexers(indexers) }

// gated is a cache that always lists in the same order. Who reads one workload from it waits for a turn.
type gated struct {
	cache.Indexer
	process *process
	main    bool
	version *string
}

// GetByKey waits for a turn.
func (g gated) GetByKey(key string) (any, bool, error) {
	if g.main {
		g.process.await(key)
	}
	return g.Indexer.GetByKey(key)
}

// LastStoreSyncResourceVersion returns the version of the last event.
func (g gated) LastStoreSyncResourceVersion() string { return *g.version }

// List lists in order.
func (g gated) List() []any { return ordered(g.Indexer.List()) }

// Index lists in order.
func (g gated) Index(name string, object any) ([]any, error) {
	all, err := g.Indexer.Index(name, object)
	return ordered(all), err
}

// ByIndex lists in order.
func (g gated) ByIndex(name, value string) ([]any, error) {
	all, err := g.Indexer.ByIndex(name, value)
	return ordered(all), err
}

func ordered(objects []any) []any {
	slices.SortFunc(objects, func(a, b any) int {
		return cmp.Compare(a.(metav1.Object).GetName(), b.(metav1.Object).GetName())
	})
	return objects
}

// These are informers as controllers take them.
type (
	deploymentInformer struct{ *watch[*apps.Deployment] }
	replicaSetInformer struct{ *watch[*apps.ReplicaSet] }
	daemonSetInformer  struct{ *watch[*apps.DaemonSet] }
	revisionInformer   struct {
		*watch[*apps.ControllerRevision]
	}
	podInformer         struct{ *watch[*corev1.Pod] }
	nodeInformer        struct{ *watch[*corev1.Node] }
	statefulSetInformer struct{ *watch[*apps.StatefulSet] }
	claimInformer       struct {
		*watch[*corev1.PersistentVolumeClaim]
	}
)

func (i deploymentInformer) Informer() cache.SharedIndexInformer { return i.watch }
func (i replicaSetInformer) Informer() cache.SharedIndexInformer { return i.watch }
func (i daemonSetInformer) Informer() cache.SharedIndexInformer  { return i.watch }
func (i revisionInformer) Informer() cache.SharedIndexInformer   { return i.watch }
func (i podInformer) Informer() cache.SharedIndexInformer        { return i.watch }
func (i nodeInformer) Informer() cache.SharedIndexInformer       { return i.watch }

func (i statefulSetInformer) Informer() cache.SharedIndexInformer { return i.watch }
func (i claimInformer) Informer() cache.SharedIndexInformer       { return i.watch }

func (i statefulSetInformer) Lister() appslisters.StatefulSetLister {
	return appslisters.NewStatefulSetLister(i.index)
}
func (i claimInformer) Lister() corelisters.PersistentVolumeClaimLister {
	return corelisters.NewPersistentVolumeClaimLister(i.index)
}
func (i deploymentInformer) Lister() appslisters.DeploymentLister {
	return appslisters.NewDeploymentLister(i.index)
}
func (i replicaSetInformer) Lister() appslisters.ReplicaSetLister {
	return appslisters.NewReplicaSetLister(i.index)
}
func (i daemonSetInformer) Lister() appslisters.DaemonSetLister {
	return appslisters.NewDaemonSetLister(i.index)
}
func (i revisionInformer) Lister() appslisters.ControllerRevisionLister {
	return appslisters.NewControllerRevisionLister(i.index)
}
func (i podInformer) Lister() corelisters.PodLister   { return corelisters.NewPodLister(i.index) }
func (i nodeInformer) Lister() corelisters.NodeLister { return corelisters.NewNodeLister(i.index) }

func watchDeployments(p *process) deploymentInformer {
	return deploymentInformer{newWatch[*apps.Deployment, appsv1.Deployment](p, 0, p.world.deployments)}
}
func watchReplicaSets(p *process) replicaSetInformer {
	return replicaSetInformer{newWatch[*apps.ReplicaSet, appsv1.ReplicaSet](p, 1, p.world.sets)}
}
func watchDaemonSets(p *process) daemonSetInformer {
	return daemonSetInformer{newWatch[*apps.DaemonSet, appsv1.DaemonSet](p, 0, p.world.daemonSets)}
}
func watchRevisions(p *process) revisionInformer {
	return revisionInformer{newWatch[*apps.ControllerRevision, appsv1.ControllerRevision](p, 1, p.world.revisions)}
}
func watchPods(p *process) podInformer {
	return podInformer{newWatch[*corev1.Pod, corev1.Pod](p, 2, p.world.pods)}
}
