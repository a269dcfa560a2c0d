package drain

import (
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
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

// listing has what selects and lists pods of one namespace.
type listing struct {
	// since is the time from which on everything in this namespace was seen, if more has gone than mostGone.
	since    time.Time
	slices   map[string]*discoveryv1.EndpointSlice
	services map[string]*corev1.Service
	gone     []gone
}

// gone is a Service, or endpoints of a slice, that existed until that time.
type gone struct {
	until   time.Time
	slice   *discoveryv1.EndpointSlice
	service *corev1.Service
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
	l.sweepEvery(ctx, inplace.LongestDrain)
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
	l.lock.Lock()
	defer l.lock.Unlock()
	note(l, before, after, now, func(of *listing) map[string]*discoveryv1.EndpointSlice { return of.slices }, (*listing).left)
	note(l, before, after, now, func(of *listing) map[string]*corev1.Service { return of.services }, (*listing).deselected)
}

// object is a pointer to a T that is a client.Object.
type object[T any] interface {
	*T
	client.Object
}

// note keeps the object after the change, and calls remember for what has gone. It does nothing if the change is of
// another type.
func note[T any, P object[T]](
	l *Listings, before, after any, now time.Time, all func(*listing) map[string]P, remember func(of *listing, before, after P, now time.Time),
) {
	seen, ok := either[P](before, after)
	if !ok {
		return
	}
	of := l.of(seen.GetNamespace())
	old, _ := before.(P)
	current, _ := after.(P)
	if current == nil {
		delete(all(of), seen.GetName())
	} else {
		all(of)[seen.GetName()] = current
	}
	remember(of, old, current, now)
}

// either returns the object after a change; if there is none, the one before it.
func either[T any](before, after any) (T, bool) {
	if object, ok := after.(T); ok {
		return object, true
	}
	object, ok := before.(T)
	return object, ok
}

func (l *Listings) of(namespace string) *listing {
	if l.namespaces == nil {
		l.namespaces = map[string]*listing{}
	}
	if l.namespaces[namespace] == nil {
		l.namespaces[namespace] = &listing{slices: map[string]*discoveryv1.EndpointSlice{}, services: map[string]*corev1.Service{}}
	}
	return l.namespaces[namespace]
}

// left remembers endpoints that a slice no longer has.
func (l *listing) left(before, after *discoveryv1.EndpointSlice, now time.Time) {
	if before == nil {
		return
	}
	if endpoints := podstate.SliceUnlisted(before, after); len(endpoints) > 0 {
		l.remember(gone{until: now, slice: &discoveryv1.EndpointSlice{AddressType: before.AddressType, Endpoints: endpoints}})
	}
}

// deselected remembers a selector that a Service no longer has.
func (l *listing) deselected(before, after *corev1.Service, now time.Time) {
	if before != nil && (after == nil || !maps.Equal(before.Spec.Selector, after.Spec.Selector)) {
		l.remember(gone{until: now, service: before})
	}
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

func (g gone) size() int {
	if g.service != nil {
		return 1 + len(g.service.Spec.Selector)
	}
	size := 0
	for _, endpoint := range g.slice.Endpoints {
		size += 1 + len(endpoint.Addresses)
	}
	return size
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
	for _, service := range l.services {
		if podstate.ServiceSelects(service, pod) {
			return true
		}
	}
	for _, slice := range l.slices {
		if podstate.SliceLists(slice, pod) {
			return true
		}
	}
	for _, went := range l.gone {
		if went.until.After(since) &&
			(went.service != nil && podstate.ServiceSelects(went.service, pod) || went.slice != nil && podstate.SliceLists(went.slice, pod)) {
			return true
		}
	}
	return false
}

// sweepEvery regularly forgets what no drain needs any more, also in namespaces where nothing happens.
func (l *Listings) sweepEvery(ctx context.Context, pause time.Duration) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			l.sweep(now)
		}
	}
}

func (l *Listings) sweep(now time.Time) {
	l.lock.Lock()
	defer l.lock.Unlock()
	for name, of := range l.namespaces {
		of.forget(now)
		if len(of.gone)+len(of.slices)+len(of.services) == 0 && now.Sub(of.since) > inplace.LongestDrain {
			delete(l.namespaces, name)
		}
	}
}
