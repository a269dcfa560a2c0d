package webhook

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// A native controller that is refused asks again with its next event, and while pods move there is one every few milliseconds. Its requests are
// limited (kube-api-qps of kube-controller-manager, 20 a second): those that are in vain keep back others, and the statuses that we wait for. So
// where the answer stays the same until we have acted, it takes its time.
const (
	// dwell is how long a refusal may take.
	dwell = 250 * time.Millisecond
	// lookEvery is how often it is seen whether the refusal still stands.
	lookEvery = 20 * time.Millisecond
	// mostDwelling is for how many objects of a kind at a time refusals may. Each keeps one of the native controller's workers, of which there are
	// five (concurrent-deployment-syncs, concurrent-replicaset-syncs) or two (concurrent-daemonset-syncs); and there are two managers.
	mostDwelling = 1
)

// dwellings are the objects about which a refusal takes its time. Of several about the same one does, as its author waits for all of them.
type dwellings struct {
	lock    sync.Mutex
	objects sets.Set[types.NamespacedName]
}

func newDwellings() *dwellings { return &dwellings{objects: sets.New[types.NamespacedName]()} }

// stay returns when the refusal no longer stands, or has taken long enough.
func (d *dwellings) stay(ctx context.Context, object types.NamespacedName, stands func(context.Context) bool) {
	if !d.enter(object) {
		return
	}
	defer d.leave(object)
	ctx, cancel := context.WithTimeout(ctx, dwell)
	defer cancel()
	for stands(ctx) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookEvery):
		}
	}
}

func (d *dwellings) enter(object types.NamespacedName) bool {
	d.lock.Lock()
	defer d.lock.Unlock()
	if d.objects.Has(object) || d.objects.Len() >= mostDwelling {
		return false
	}
	d.objects.Insert(object)
	return true
}

func (d *dwellings) leave(object types.NamespacedName) {
	d.lock.Lock()
	defer d.lock.Unlock()
	d.objects.Delete(object)
}
