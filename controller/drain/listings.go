package drain

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/podstate"
)

// mostGone bounds how many pods and addresses that have left EndpointSlices are remembered of one namespace.
const mostGone = 1000

// Listings has what this manager has seen in its watches of Services and EndpointSlices. If no Service selects a pod
// and no slice lists it now, clients may still call it, because proxies and load balancers follow later. So Listings
// remembers what is gone for as long as the longest drain.
//
// It also keeps the current Services and slices, at the same moment as those that are gone. A cache may have dropped a
// Service before its event handlers are called.
type Listings struct {
	Cache cache.Cache

	lock sync.Mutex
	// since is the time from which on everything was seen; zero before that.
	since      time.Time
	namespaces map[string]*listing
}

// listing has what sends clients to pods of one namespace: its Services and EndpointSlices.
type listing struct {
	// since is the time from which on everything in this namespace was seen, if more has gone than mostGone.
	since time.Time
	// there has those that exist, by type and name.
	there map[string]client.Object
	gone  []gone
}

// gone is a Service, or a slice with endpoints, that existed until that time.
type gone struct {
	until  time.Time
	object client.Object
}

// NeedLeaderElection returns false, so that every manager watches. The next leader then need not begin to watch when it
// is elected.
func (*Listings) NeedLeaderElection() bool { return false }

// Start watches until the manager ends.
func (l *Listings) Start(ctx context.Context) error {
	var synced []toolscache.InformerSynced
	for _, watched := range []client.Object{&discoveryv1.EndpointSlice{}, &corev1.Service{}} {
		informer, err := l.Cache.GetInformer(ctx, watched)
		if err != nil {
			return err
		}
		handler, err := informer.AddEventHandler(l)
		if err != nil {
			return err
		}
		synced = append(synced, handler.HasSynced)
	}
	if toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		l.begin(time.Now())
	}
	wait.UntilWithContext(ctx, func(context.Context) { l.sweep(time.Now()) }, inplace.LongestDrain)
	return nil
}

func (l *Listings) begin(now time.Time) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.since = now
}

// OnAdd implements cache.ResourceEventHandler of client-go.
func (l *Listings) OnAdd(object any, _ bool) { l.see(nil, object, time.Now()) }

// OnUpdate implements cache.ResourceEventHandler of client-go.
func (l *Listings) OnUpdate(before, after any) { l.see(before, after, time.Now()) }

// OnDelete implements cache.ResourceEventHandler of client-go.
func (l *Listings) OnDelete(object any) {
	if unavailable, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = unavailable.Obj
	}
	l.see(object, nil, time.Now())
}

// see notes one change. before is nil for a new object, after is nil for one that is gone.
func (l *Listings) see(before, after any, now time.Time) {
	old, _ := before.(client.Object)
	current, _ := after.(client.Object)
	seen := cmp.Or(current, old)
	if seen == nil {
		return
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	of := l.of(seen.GetNamespace())
	key := fmt.Sprintf("%T %s", seen, seen.GetName())
	if of.there[key] = current; current == nil {
		delete(of.there, key)
	}
	if went := left(old, current); went != nil {
		of.remember(gone{now, went})
	}
}

func (l *Listings) of(namespace string) *listing {
	if l.namespaces == nil {
		l.namespaces = map[string]*listing{}
	}
	if l.namespaces[namespace] == nil {
		l.namespaces[namespace] = &listing{there: map[string]client.Object{}}
	}
	return l.namespaces[namespace]
}

// left returns what sent clients to pods before the change and does not after it: a slice with the endpoints that it had, or a Service with
// its selector; nil if there is nothing.
func left(before, after client.Object) client.Object {
	switch before := before.(type) {
	case *discoveryv1.EndpointSlice:
		after, _ := after.(*discoveryv1.EndpointSlice)
		if endpoints := podstate.SliceUnlisted(before, after); len(endpoints) > 0 {
			return &discoveryv1.EndpointSlice{AddressType: before.AddressType, Endpoints: endpoints}
		}
	case *corev1.Service:
		after, _ := after.(*corev1.Service)
		if after == nil || !maps.Equal(before.Spec.Selector, after.Spec.Selector) {
			return before
		}
	}
	return nil
}

// remember remembers what has gone. If too much has gone in the namespace, it forgets all of that. Then nothing is
// known of the time before.
func (l *listing) remember(went gone) {
	l.forget(went.until)
	l.gone = append(l.gone, went)
	size := 0
	for _, each := range l.gone {
		size += each.size()
	}
	if size > mostGone {
		l.gone, l.since = nil, went.until
	}
}

// size returns how many pods and addresses, or labels, are remembered for it.
func (g gone) size() int {
	switch object := g.object.(type) {
	case *corev1.Service:
		return 1 + len(object.Spec.Selector)
	case *discoveryv1.EndpointSlice:
		size := 0
		for _, endpoint := range object.Endpoints {
			size += 1 + len(endpoint.Addresses)
		}
		return size
	}
	return 0
}

// forget forgets what went longer ago than the longest drain.
func (l *listing) forget(now time.Time) {
	for len(l.gone) > 0 && now.Sub(l.gone[0].until) > inplace.LongestDrain {
		l.gone = l.gone[1:]
	}
}

// noClientSent reports whether for the duration of the drain no client can have been sent to the pod, as far as
// Listings has seen.
func (l *Listings) noClientSent(pod *corev1.Pod, drain time.Duration, now time.Time) bool {
	if l == nil {
		return false
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.since.IsZero() || now.Sub(l.since) < drain {
		return false
	}
	of := l.namespaces[pod.Namespace]
	return of == nil || now.Sub(of.since) >= drain && !of.sentTo(pod, now.Add(-drain))
}

// sentTo reports whether a Service selects the pod or a slice lists it, now or at some time since then.
func (l *listing) sentTo(pod *corev1.Pod, since time.Time) bool {
	for _, object := range l.there {
		if sends(object, pod) {
			return true
		}
	}
	return slices.ContainsFunc(l.gone, func(went gone) bool { return went.until.After(since) && sends(went.object, pod) })
}

// sends reports whether clients are sent to the pod by the Service or slice.
func sends(object client.Object, pod *corev1.Pod) bool {
	switch object := object.(type) {
	case *corev1.Service:
		return podstate.ServiceSelects(object, pod)
	case *discoveryv1.EndpointSlice:
		return podstate.SliceLists(object, pod)
	}
	return false
}

// sweep forgets what no drain needs any more, also in namespaces where nothing happens.
func (l *Listings) sweep(now time.Time) {
	l.lock.Lock()
	defer l.lock.Unlock()
	for name, of := range l.namespaces {
		of.forget(now)
		if len(of.gone)+len(of.there) == 0 && now.Sub(of.since) > inplace.LongestDrain {
			delete(l.namespaces, name)
		}
	}
}
