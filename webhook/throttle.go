package webhook

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// A native controller whose write is refused tries again with its next event, and while pods move there is an event every few
// milliseconds. Its requests are limited (kube-api-qps of kube-controller-manager, 20 a second), so futile writes delay its other writes
// and its statuses. So where the answer stays the same until Stayput has acted, the answer comes late.
//
// A request that waits at a manager is lost when that manager ends, and then failurePolicy lets the write pass. So a webhook that refuses
// never waits. The throttling webhooks always allow, and the API server calls them in parallel with the webhooks that decide at once. The
// API server takes a refusal whatever the other webhooks answer, but not before all have answered
// (apiserver/pkg/admission/plugin/webhook/validating/dispatcher.go).
const (
	// throttle is how long an answer may be delayed: less than the webhooks' timeoutSeconds. throttleFew is the same for a controller with
	// few workers.
	throttle    = 700 * time.Millisecond
	throttleFew = 250 * time.Millisecond
	// lookEvery is how often a waiting request checks whether Stayput has acted. A check is slow where there are thousands of pods. Then
	// checks take a tenth of the time.
	lookEvery = 20 * time.Millisecond
	// throttleTwo is the number of objects of a kind about which answers are delayed at a time, where the native controller has five workers:
	// the ReplicaSet that pods leave, and the one to which they come. Each delayed answer blocks one worker, and there are two managers.
	throttleTwo = 2
)

// throttled are the objects about which an answer to one native controller is delayed. Of several requests about one object, only one is
// delayed: the controller waits for all of them. A controller has five workers (concurrent-deployment-syncs, concurrent-replicaset-syncs,
// concurrent-statefulset-syncs) or two (concurrent-daemonset-syncs).
type throttled struct {
	longest time.Duration
	objects int
	lock    sync.Mutex
	about   sets.Set[types.NamespacedName]
}

func newThrottled(longest time.Duration, objects int) *throttled {
	return &throttled{longest: longest, objects: objects, about: sets.New[types.NamespacedName]()}
}

// wait returns when the request is no longer futile, or has waited long enough.
func (t *throttled) wait(ctx context.Context, object types.NamespacedName, futile func(context.Context) bool) {
	if !t.enter(object) {
		return
	}
	defer t.leave(object)
	ctx, cancel := context.WithTimeout(ctx, t.longest)
	defer cancel()
	for from := time.Now(); futile(ctx); from = time.Now() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(lookEvery, 9*time.Since(from))):
		}
	}
}

func (t *throttled) enter(object types.NamespacedName) bool {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.about.Has(object) || t.about.Len() >= t.objects {
		return false
	}
	t.about.Insert(object)
	return true
}

func (t *throttled) leave(object types.NamespacedName) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.about.Delete(object)
}
