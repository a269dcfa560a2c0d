package drain

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/serving"
)

// mostGone bounds how many pods and addresses are remembered of one namespace that have left an EndpointSlice.
const mostGone = 1000

// Listings is what this manager has seen pass in its watches of Services and EndpointSlices. That no Service selects a pod and no slice
// lists it now does not say that nobody calls it: proxies and load balancers may still have to follow. So what has gone is remembered for
// as long as the longest drain.
//
// It keeps what there is as well, in step with what has gone: a cache may have dropped a Service before its watcher hears of it.
type Listings struct {
	Cache cache.Cache

	lock sync.Mutex
	// since is from when on everything was seen; zero as long as that has not begun.
	since      time.Time
	namespaces map[string]*listing
}

// listing is what selects and lists pods of one namespace.
type listing struct {
	// since is later than that of all where more has gone than is remembered.
	since    time.Time
	slices   map[string]*discoveryv1.EndpointSlice
	services map[string]*corev1.Service
	gone     []gone
}

// gone is a Service, or the endpoints of a slice, that were there until then.
type gone struct {
	until   time.Time
	slice   *discoveryv1.EndpointSlice
	service *corev1.Service
}

// NeedLeaderElection lets every manager watch, so that who leads next need not begin then.
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

// see takes note of one change; nil is what is not there.
func (l *Listings) see(before, after any, now time.Time) {
	l.lock.Lock()
	defer l.lock.Unlock()
	note(l, before, after, now, func(of *listing) map[string]*discoveryv1.EndpointSlice { return of.slices }, (*listing).left)
	note(l, before, after, now, func(of *listing) map[string]*corev1.Service { return of.services }, (*listing).deselected)
}

// object is a T that is used through its pointer.
type object[T any] interface {
	*T
	client.Object
}

// note puts what is there now among those of its type, and has it remembered what has gone; nothing if the change is of another type.
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

// either returns the object after a change, or else the one before it.
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

// left remembers the endpoints that a slice has no longer.
func (l *listing) left(before, after *discoveryv1.EndpointSlice, now time.Time) {
	if before == nil {
		return
	}
	if endpoints := serving.Unlisted(before, after); len(endpoints) > 0 {
		l.remember(gone{until: now, slice: &discoveryv1.EndpointSlice{AddressType: before.AddressType, Endpoints: endpoints}})
	}
}

// deselected remembers a selector that a Service has no longer.
func (l *listing) deselected(before, after *corev1.Service, now time.Time) {
	if before != nil && !serving.SameSelector(before, after) {
		l.remember(gone{until: now, service: before})
	}
}

// remember forgets all of a namespace in which too much goes: then nothing is known of what went before.
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

// forget drops what went before the longest drain.
func (l *listing) forget(now time.Time) {
	for len(l.gone) > 0 && now.Sub(l.gone[0].until) > inplace.LongestDrain {
		l.gone = l.gone[1:]
	}
}

// noClientSent reports whether nobody can have been sent to the pod for as long as the drain, as far as was seen.
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

// sentTo asks what is there, and what has gone since then.
func (l *listing) sentTo(pod *corev1.Pod, since time.Time) bool {
	for _, service := range l.services {
		if serving.Selects(service, pod) {
			return true
		}
	}
	for _, slice := range l.slices {
		if serving.Lists(slice, pod) {
			return true
		}
	}
	for _, went := range l.gone {
		if went.until.After(since) && (went.service != nil && serving.Selects(went.service, pod) || went.slice != nil && serving.Lists(went.slice, pod)) {
			return true
		}
	}
	return false
}

// sweepEvery drops what no drain asks for any more, also of namespaces in which nothing happens.
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
