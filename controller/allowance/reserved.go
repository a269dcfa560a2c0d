package allowance

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/stayput/stayput/controller/write"
	"github.com/stayput/stayput/inplace/concurrency"
)

// doubtful is for how long the cache may not show what was written. A reservation counts so long of which it is not known whether the pod
// was written, or whether the cache shows it. And a new leader reserves nothing so long.
const doubtful = 5 * time.Second

// reservations are by the UID of the pod.
type reservations map[types.UID]reservation

// reservation is the room for one pod, until the cache shows what was written to the pod.
type reservation struct {
	state
	key types.NamespacedName
	pod concurrency.Pod
	// limited: limits count the pod.
	limited bool
}

// state is how far such a pod is.
type state struct {
	// version is the resourceVersion that it has reached; empty if that is not known.
	version string
	// until is how long that counts at most where versions cannot be compared; zero while the pod is being written.
	until time.Time
}

// inFlight is the state of a pod that is being written.
var inFlight state

// stateAfter returns how far a pod is that may have been written, given how far it was before. It returns inFlight if it certainly never
// was written.
func stateAfter(done write.Outcome, uid types.UID, before state) state {
	at, until := slices.IndexFunc(done.Writes, func(made write.Done) bool { return made.After.GetUID() == uid }), time.Now().Add(doubtful)
	switch {
	case at >= 0:
		return state{version: done.Writes[at].After.GetResourceVersion(), until: until}
	case done.Err != nil:
		return state{until: until}
	}
	return before
}

// outlasts reports whether the cache, which has that version of the pod, need not show yet that the pod was taken.
func (s state) outlasts(cached string, now time.Time) bool {
	switch order, err := resourceversion.CompareResourceVersion(cached, s.version); {
	case s == inFlight:
		return true
	case s.version == "" || err != nil:
		return cached != s.version && now.Before(s.until)
	default:
		return order < 0
	}
}

// forgetShown drops what is reserved for pods of which the cache shows what was written to them.
func (r reservations) forgetShown(ctx context.Context, cached reader) error {
	for uid, one := range r {
		version, err := cached.VersionOf(ctx, one.key, uid)
		if err != nil {
			return err
		}
		if version == "" || !one.outlasts(version, time.Now()) {
			delete(r, uid)
		}
	}
	return nil
}

// taken returns the pods for which room is reserved. Callers list pods afterwards: those that are forgotten here are then as new as what
// was written to them, or newer.
func (b *Broker) taken(ctx context.Context) (map[types.UID]bool, error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	err := b.reserved.forgetShown(ctx, b.Cached)
	taken := map[types.UID]bool{}
	for uid := range b.reserved {
		taken[uid] = true
	}
	return taken, err
}
