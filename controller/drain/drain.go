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

// Drains knows since when pods that wait for their restart are out of service. The cache only says when it is
// worthwhile to ask the API server: the cache may not even show yet that a pod ever was an endpoint. Drains asks the
// API server twice, when the wait begins and when it ends. After a restart the wait begins anew, which is safe.
type Drains struct {
	Cached, Live endpointsReader
	// Seen knows whether clients were sent to a pod lately, for pods to which none are sent now. If Seen is nil, every pod
	// counts as one to which clients were sent lately.
	Seen *Listings

	lock sync.Mutex
	// out has, by workload and by UID of the pod, the time since when no EndpointSlice offers the pod.
	out map[types.NamespacedName]map[types.UID]time.Time
}

// Endpoints returns what a plan has to know of endpoints. It returns nil if no gate is closed, or if there is no drain.
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

// Confirm asks the API server once more, right before containers stop. It leaves out the steps for which it is too
// early. It returns false if there are such steps.
func (d *Drains) Confirm(
	ctx context.Context, workload types.NamespacedName, seen kinds.Snapshot, todo []steps.Step,
) (kept []steps.Step, confirmed bool) {
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

// ask reads the API server and remembers which pods are out of service. An error does not end the reconcile. Then
// nothing is known of the endpoints, and the plan waits for at most as long as a drain may take altogether.
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

// doubt resets NoClientSent of a pod unless it has been true during the whole drain. A Service or an endpoint that sent
// clients to the pod may have gone a moment ago.
func (d *Drains) doubt(seen kinds.Snapshot, endpoints serving.Endpoints) {
	now := time.Now()
	for _, pod := range seen.Pods {
		if endpoint := endpoints[pod.UID]; endpoint.NoClientSent && !d.Seen.noClientSent(pod, seen.Settings.Drain, now) {
			endpoint.NoClientSent = false
			endpoints[pod.UID] = endpoint
		}
	}
}

// remember notes which pods are out of service now, and forgets all others.
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

// compare sets OutSince of the endpoints, and forgets pods that are offered again. It returns false if a pod is out of
// service, its OutSince matters and is not known.
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

// Forget forgets a workload none of whose pods waits.
func (d *Drains) Forget(workload types.NamespacedName) {
	d.lock.Lock()
	defer d.lock.Unlock()
	delete(d.out, workload)
}
