//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// Recorder watches the workloads, their revisions, the pods and the EndpointSlices of one namespace from its beginning, and keeps every
// event. Tests wait for states that it has seen. When the test ends, the judge checks its events in the order in which they happened.
type Recorder struct {
	namespace string
	lists     map[string]*cache.ListWatch
	started   time.Time
	ctx       context.Context
	stop      context.CancelFunc
	// relists says that an API server restarts, which has no events from before then. What happens until it is asked again is not seen.
	relists atomic.Bool

	mutex   sync.Mutex
	waiting map[*waiter]bool
	events  []event
	passed  map[string]uint64 // the newest version each watch has delivered
	live    world             // what has arrived so far: good for waits, not for the judge
	phases  []phase
	broken  error
}

// waiter is a test that waits for a condition.
type waiter struct {
	condition func(world) error
	missing   error         // what the condition said last
	over      chan struct{} // closed when the condition is met, or cannot be met any more
}

// record starts a Recorder, whose events are checked when the test ends.
func record(t *testing.T, namespace string) *Recorder {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r := &Recorder{
		namespace: namespace,
		lists:     listsOf(namespace),
		started:   time.Now(),
		ctx:       ctx,
		stop:      stop,
		waiting:   map[*waiter]bool{},
		passed:    map[string]uint64{},
		live:      newWorld(),
		// A kubelet may report a new pod as Ready and take that back in its next report. At creation there is no update yet that could wait
		// for it.
		phases: []phase{{name: "creation", rules: Rules{Created: anyNumber, Deleted: anyNumber, Outage: true}}},
	}
	for kind, list := range r.lists {
		if err := r.follow(kind, list); err != nil {
			t.Fatalf("watching %s: %v", kind, err)
		}
	}
	// catchUp does not wait for slices; only offered does.
	offers := cache.NewListWatchFromClient(clients.DiscoveryV1().RESTClient(), "endpointslices", namespace, fields.Everything())
	if err := r.follow("endpointslices", offers); err != nil {
		t.Fatalf("watching EndpointSlices: %v", err)
	}
	return r
}

func listsOf(namespace string) map[string]*cache.ListWatch {
	apps, core := clients.AppsV1().RESTClient(), clients.CoreV1().RESTClient()
	return map[string]*cache.ListWatch{
		"deployments":         cache.NewListWatchFromClient(apps, "deployments", namespace, fields.Everything()),
		"replicasets":         cache.NewListWatchFromClient(apps, "replicasets", namespace, fields.Everything()),
		"daemonsets":          cache.NewListWatchFromClient(apps, "daemonsets", namespace, fields.Everything()),
		"statefulsets":        cache.NewListWatchFromClient(apps, "statefulsets", namespace, fields.Everything()),
		"controllerrevisions": cache.NewListWatchFromClient(apps, "controllerrevisions", namespace, fields.Everything()),
		"pods":                cache.NewListWatchFromClient(core, "pods", namespace, fields.Everything()),
	}
}

// follow takes the existing objects of a kind and then every event.
func (r *Recorder) follow(kind string, list *cache.ListWatch) error {
	return follow(r.ctx, list, func(e watch.Event) {
		if r.relists.Load() && e.Type == watch.Error && apierrors.IsResourceExpired(apierrors.FromObject(e.Object)) {
			go r.relist(kind, list)
			return
		}
		r.take(kind, e)
	})
}

// relist follows a kind anew. Objects that are not there any more were deleted at some time before the version of the list.
func (r *Recorder) relist(kind string, list *cache.ListWatch) {
	_ = pollFor(r.ctx, time.Hour, func(ctx context.Context) error {
		items, version, err := read(ctx, list)
		if err != nil {
			return err
		}
		for _, object := range r.lost(kind, items) {
			object.SetResourceVersion(version)
			r.take(kind, watch.Event{Type: watch.Deleted, Object: object.(runtime.Object)})
		}
		return r.follow(kind, list)
	})
}

// lost returns copies of the objects that are not among the items.
func (r *Recorder) lost(kind string, items []runtime.Object) []metav1.Object {
	there := map[types.UID]bool{}
	for _, item := range items {
		there[item.(metav1.Object).GetUID()] = true
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var lost []metav1.Object
	for _, object := range r.live.objects(kind) {
		if !there[object.GetUID()] {
			lost = append(lost, object.(runtime.Object).DeepCopyObject().(metav1.Object))
		}
	}
	return lost
}

// follow passes on the existing objects and then every event.
func follow(ctx context.Context, list *cache.ListWatch, take func(watch.Event)) error {
	items, version, err := read(ctx, list)
	if err != nil {
		return err
	}
	for _, item := range items {
		take(watch.Event{Type: watch.Added, Object: item})
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, version, list)
	if err != nil {
		return err
	}
	go func() {
		for e := range watcher.ResultChan() {
			take(e)
		}
	}()
	return nil
}

// read lists consistently, not from a cache that may be old.
func read(ctx context.Context, list *cache.ListWatch) ([]runtime.Object, string, error) {
	found, err := list.ListWithContext(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, "", err
	}
	of, err := meta.ListAccessor(found)
	if err != nil {
		return nil, "", err
	}
	items, err := meta.ExtractList(found)
	return items, of.GetResourceVersion(), err
}

func (r *Recorder) take(kind string, received watch.Event) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if received.Type == watch.Bookmark {
		return
	}
	object, ok := received.Object.(metav1.Object)
	if !ok || received.Type == watch.Error {
		r.broken = fmt.Errorf("the watch of %s broke: %v", kind, received.Object)
		r.askAll()
		return
	}
	object.SetManagedFields(ofUsers(object.GetManagedFields()))
	e := event{version: versionOf(object.GetResourceVersion()), at: time.Now(), what: received.Type, object: object}
	r.events = append(r.events, e)
	r.passed[kind] = max(r.passed[kind], e.version)
	r.live.apply(e)
	r.askAll()
}

// ofUsers keeps only what the judge needs: the owners of fields of the object itself, not of a subresource.
func ofUsers(managed []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(managed, func(entry metav1.ManagedFieldsEntry) bool { return entry.Subresource != "" })
}

func versionOf(resourceVersion string) uint64 {
	version, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("resourceVersion %q is not a number: these tests need etcd underneath", resourceVersion))
	}
	return version
}

// catchUp waits until the watches have delivered everything that happened before the call.
func (r *Recorder) catchUp(ctx context.Context) error {
	for kind, list := range r.lists {
		items, version, err := read(ctx, list)
		if err != nil {
			return err
		}
		err = r.until(ctx, func(world) error { return r.delivered(kind, items, versionOf(version)) })
		if err != nil {
			return fmt.Errorf("the watch of %s lags behind: %w", kind, err)
		}
	}
	return nil
}

// delivered returns nil if every listed object has arrived, and every deletion before the list.
func (r *Recorder) delivered(kind string, items []runtime.Object, listed uint64) error {
	there := map[string]bool{}
	for _, item := range items {
		object := item.(metav1.Object)
		there[object.GetName()] = true
		if version := versionOf(object.GetResourceVersion()); version > r.passed[kind] {
			return fmt.Errorf("%s has version %d, the watch is at %d", object.GetName(), version, r.passed[kind])
		}
	}
	for _, object := range r.live.objects(kind) {
		if !there[object.GetName()] && versionOf(object.GetResourceVersion()) <= listed {
			return fmt.Errorf("the deletion of %s has not arrived", object.GetName())
		}
	}
	return nil
}

func (w world) objects(kind string) []metav1.Object {
	var objects []metav1.Object
	switch kind {
	case "deployments":
		objects = values(w.deployments)
	case "replicasets":
		objects = values(w.sets)
	case "daemonsets":
		objects = values(w.daemonSets)
	case "statefulsets":
		objects = values(w.statefulSets)
	case "controllerrevisions":
		objects = values(w.revisions)
	case "endpointslices":
		objects = values(w.slices)
	case "pods":
		objects = append(values(w.pods), values(w.prePullPods)...)
	}
	return objects
}

func values[K comparable, T metav1.Object](from map[K]T) []metav1.Object {
	var objects []metav1.Object
	for _, object := range from {
		objects = append(objects, object)
	}
	return objects
}

// until waits for a condition on what has arrived. It evaluates the condition at each event, so that no state is too short to be seen, and
// twice a second for what depends on time. The last error of the condition is its error.
func (r *Recorder) until(ctx context.Context, condition func(world) error) error {
	w := &waiter{condition: condition, over: make(chan struct{})}
	tick := time.NewTicker(time.Second / 2)
	defer tick.Stop()
	for r.ask(w) {
		select {
		case <-ctx.Done():
			return r.giveUp(w)
		case <-tick.C:
		case <-w.over:
			return w.missing
		}
	}
	return w.missing
}

// ask reports whether the condition is not met yet. From now on it is evaluated at every event.
func (r *Recorder) ask(w *waiter) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	select {
	case <-w.over:
	default:
		r.waiting[w] = true
		r.askNow(w)
	}
	return r.waiting[w]
}

func (r *Recorder) askAll() {
	for w := range r.waiting {
		r.askNow(w)
	}
}

// askNow evaluates the waiter's condition. A condition that was met is not evaluated again.
func (r *Recorder) askNow(w *waiter) {
	if w.missing = r.broken; r.broken == nil {
		w.missing = w.condition(r.live)
	}
	if r.broken != nil || w.missing == nil {
		delete(r.waiting, w)
		close(w.over)
	}
}

// giveUp removes the waiter, and returns the last error of its condition.
func (r *Recorder) giveUp(w *waiter) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.waiting, w)
	return w.missing
}

// Begin starts a phase with its own rules at this moment.
func (r *Recorder) Begin(ctx context.Context, name string, rules Rules) error {
	_, version, err := read(ctx, r.lists["pods"])
	if err != nil {
		return err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.phases = append(r.phases, phase{name: name, rules: rules, from: versionOf(version)})
	return nil
}

// inOrder returns the events so far, in the order in which they happened.
func (r *Recorder) inOrder() []event {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	events := slices.Clone(r.events)
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.version, b.version) })
	return events
}

// before returns the namespace just before a workload reached a generation: the state that an edit met.
func (r *Recorder) before(name string, generation int64) world {
	met := newWorld()
	for _, e := range r.inOrder() {
		if isNamed(e.object, name) && e.object.GetGeneration() >= generation {
			break
		}
		met.apply(e)
	}
	return met
}

// ever reports whether some event so far satisfies the predicate.
func ever[T metav1.Object](r *Recorder, satisfies func(T) bool) bool {
	return slices.ContainsFunc(r.inOrder(), func(e event) bool {
		object, ok := e.object.(T)
		return ok && satisfies(object)
	})
}
