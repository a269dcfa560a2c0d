package drain

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stayput/stayput/controller/kinds"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/serving"
	"github.com/stayput/stayput/inplace/steps"
)

// endpointsReader reads what EndpointSlices say about pods whose gates are closed; see observe.Reader.
type endpointsReader interface {
	Endpoints(ctx context.Context, namespace string, pods []*corev1.Pod) (serving.Endpoints, error)
}

// Drains knows since when pods that wait for their restart are out of service. The cache only says when it is worth while to ask:
// it may not even show yet that a pod was ever offered. The API server is asked twice, when the wait begins and when it ends. After
// a restart the wait begins anew, which is the safe side.
type Drains struct {
	Cached, Live endpointsReader
	// seen tells of pods to which nobody is sent whether anybody was, not long ago. Without it there is no such pod.
	Seen *Listings

	lock sync.Mutex
	// out is since when no EndpointSlice offers the pods of a workload, by UID.
	out map[types.NamespacedName]map[types.UID]time.Time
}

// Endpoints returns what a plan has to know. Where no gate is closed, or nothing is waited for, that is nothing.
func (d *Drains) Endpoints(ctx context.Context, workload types.NamespacedName, seen kinds.Snapshot) (serving.Endpoints, error) {
	if seen.Settings.Drain == 0 || !slices.ContainsFunc(seen.Pods, readiness.Closed) {
		d.Forget(workload)
		return nil, nil
	}
	endpoints, err := d.Cached.Endpoints(ctx, workload.Namespace, seen.Pods)
	if err != nil {
		return nil, err
	}
	d.doubt(seen, endpoints)
	if known := d.compare(workload, endpoints); known {
		return endpoints, nil
	}
	if current := d.ask(ctx, workload, seen); current != nil {
		return current, nil
	}
	return endpoints, nil
}

// Confirm asks once more, right before containers stop, and leaves out the steps for which that would be too early; if there are
// such, it is not confirmed.
func (d *Drains) Confirm(ctx context.Context, workload types.NamespacedName, seen kinds.Snapshot, todo []steps.Step) (kept []steps.Step, confirmed bool) {
	if seen.Settings.Drain == 0 || !slices.ContainsFunc(todo, restartsDrained) {
		return todo, true
	}
	current := d.ask(ctx, workload, seen)
	now := time.Now()
	for _, step := range todo {
		if patch, ok := step.(steps.PatchPod); ok && patch.Drained {
			if drained, _ := current[patch.Pod.UID].Drained(patch.Pod, seen.Settings.Drain, patch.ServesOn, now); !drained {
				log.FromContext(ctx).V(1).Info("Not out of service after all", "pod", patch.Pod.Name)
				continue
			}
		}
		kept = append(kept, step)
	}
	return kept, len(kept) == len(todo)
}

func restartsDrained(step steps.Step) bool {
	patch, ok := step.(steps.PatchPod)
	return ok && patch.Drained
}

// ask reads the API server and remembers what is out. An error is no reason to end here: nothing is known then, and that may be so
// for only as long as the wait may take altogether.
func (d *Drains) ask(ctx context.Context, workload types.NamespacedName, seen kinds.Snapshot) serving.Endpoints {
	current, err := d.Live.Endpoints(ctx, workload.Namespace, seen.Pods)
	if err != nil {
		log.FromContext(ctx).Error(err, "EndpointSlices cannot be read: containers restart late", "workload", workload)
		return nil
	}
	d.doubt(seen, current)
	d.remember(workload, current, time.Now())
	d.compare(workload, current)
	return current
}

// doubt takes back that nobody is sent to a pod where that is not known of all the time of its drain: what there was can have gone a moment
// ago.
func (d *Drains) doubt(seen kinds.Snapshot, endpoints serving.Endpoints) {
	now := time.Now()
	for _, pod := range seen.Pods {
		if endpoint := endpoints[pod.UID]; endpoint.NoClientSent && !d.Seen.noClientSent(pod, seen.Settings.Drain, now) {
			endpoint.NoClientSent = false
			endpoints[pod.UID] = endpoint
		}
	}
}

// remember notes which pods are out now, and forgets all others.
func (d *Drains) remember(workload types.NamespacedName, current serving.Endpoints, now time.Time) {
	d.lock.Lock()
	defer d.lock.Unlock()
	before, out := d.out[workload], map[types.UID]time.Time{}
	for uid, endpoint := range current {
		if since, known := before[uid]; known && !endpoint.Listed {
			out[uid] = since
		} else if !endpoint.Listed {
			out[uid] = now
		}
	}
	if d.out == nil {
		d.out = map[types.NamespacedName]map[types.UID]time.Time{}
	}
	d.out[workload] = out
}

// compare completes the endpoints by since when they are out, and forgets those that are offered again; known, unless one is out
// of which that is not known and matters.
func (d *Drains) compare(workload types.NamespacedName, endpoints serving.Endpoints) (known bool) {
	d.lock.Lock()
	defer d.lock.Unlock()
	known = true
	for uid, since := range d.out[workload] {
		endpoint, closed := endpoints[uid]
		if !closed || endpoint.Listed {
			delete(d.out[workload], uid)
			continue
		}
		endpoint.OutSince = since
		endpoints[uid] = endpoint
	}
	for _, endpoint := range endpoints {
		known = known && (endpoint.Listed || endpoint.NoClientSent || !endpoint.OutSince.IsZero())
	}
	return known
}

// Forget drops a workload of which no pod waits.
func (d *Drains) Forget(workload types.NamespacedName) {
	d.lock.Lock()
	defer d.lock.Unlock()
	delete(d.out, workload)
}
