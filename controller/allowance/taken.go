package allowance

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/stayput/stayput/controller/write"
)

// doubtful is for how long a pod counts as taken of which it is not known whether it was written, or whether the cache shows it.
const doubtful = 5 * time.Second

// taken are the pods of a namespace that were given an allowance, by UID, until the cache shows what was written to them.
type taken map[types.UID]state

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

// now returns the pods that count as taken, given the pods in the cache. It forgets the others.
func (t taken) now(cached []*corev1.Pod, now time.Time) map[types.UID]bool {
	versions := map[types.UID]string{}
	for _, pod := range cached {
		versions[pod.UID] = pod.ResourceVersion
	}
	still := map[types.UID]bool{}
	for uid, reached := range t {
		if version, exists := versions[uid]; exists && reached.outlasts(version, now) {
			still[uid] = true
		} else {
			delete(t, uid)
		}
	}
	return still
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
