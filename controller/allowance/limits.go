package allowance

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stayput/stayput/controller/kinds"
	"github.com/stayput/stayput/controller/write"
	"github.com/stayput/stayput/inplace/concurrency"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

const (
	// settling is for how long a new leader gives no permission: its cache may not show yet what the one before has written last.
	settling = 5 * time.Second
	// remembered is for how long a request counts that is not made again. Plans of workloads whose pods wait are made more often.
	remembered = time.Minute
	// collecting is for how long pods are kept permitted for a workload that was woken.
	collecting = 5 * time.Second
	// wakeAgain is how long after a workload was woken it may be woken again.
	wakeAgain = 100 * time.Millisecond
)

// restartReader reads the cache; see observe.Reader.
type restartReader interface {
	RestartingPods(ctx context.Context) ([]*corev1.Pod, error)
	NodesOf(ctx context.Context, pods []*corev1.Pod) ([]*corev1.Node, error)
	VersionOf(ctx context.Context, pod types.NamespacedName, uid types.UID) (string, error)
}

// Restarts is where pods of all workloads get their permission to restart, as far as limits require one. A nil Restarts has no limits.
type Restarts struct {
	Limits concurrency.Limits
	Cached restartReader

	lock sync.Mutex
	// since is when this leader first made a plan.
	since time.Time
	// given are the pods with a permission, until the cache shows what was written to them.
	given    map[types.UID]permission
	requests map[types.UID]request
	// latest has the number of the last permission, by namespace, and number the last number of all.
	latest map[string]int
	number int
}

// permission is that of one pod.
type permission struct {
	state
	key types.NamespacedName
	pod concurrency.Pod
}

// request is about pods that wait.
type request struct {
	concurrency.Request
	at, woken time.Time
	// wake has the workload planned again.
	wake func()
}

// Share returns what a plan has to know of limits; nil if there are none.
func (r *Restarts) Share(ctx context.Context, rollout kinds.Rollout) (*concurrency.Share, error) {
	if r == nil {
		return nil, nil
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	now := time.Now()
	if r.since.IsZero() {
		r.since = now
	}
	seen, err := r.seen(ctx, now)
	return seen.ShareOf(rollout.Workload().GetUID()), err
}

// seen returns what was observed of all workloads. The caller has the lock.
func (r *Restarts) seen(ctx context.Context, now time.Time) (concurrency.Seen, error) {
	seen := concurrency.Seen{Limits: r.Limits, Latest: r.latest}
	pods, err := r.Cached.RestartingPods(ctx)
	if err != nil {
		return seen, err
	}
	pods = slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return !concurrency.Counts(pod, now) })
	known, err := r.Cached.NodesOf(ctx, pods)
	if err != nil {
		return seen, err
	}
	byName, counted := readiness.NodesByName(known), map[types.UID]bool{}
	for _, pod := range pods {
		counted[pod.UID] = true
		seen.Restarting = append(seen.Restarting, concurrency.PodOf(pod, byName[pod.Spec.NodeName]))
	}
	for uid, one := range r.given {
		version, err := r.Cached.VersionOf(ctx, one.key, uid)
		switch {
		case err != nil:
			return seen, err
		case version == "" || !one.outlasts(version, now):
			delete(r.given, uid)
		case !counted[uid]:
			seen.Restarting = append(seen.Restarting, one.pod)
		}
	}
	for uid, one := range r.requests {
		if now.Sub(one.at) > remembered || one.woken.After(one.at) && now.Sub(one.woken) > collecting {
			delete(r.requests, uid)
			continue
		}
		seen.Requests = append(seen.Requests, one.Request)
	}
	return seen, nil
}

// Planned notes which pods of a workload wait, as its plan says, and wakes the workloads whose pods may restart now.
func (r *Restarts) Planned(ctx context.Context, rollout kinds.Rollout, plan steps.Plan, wake func()) error {
	if r == nil {
		return nil
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	workload, now := rollout.Workload().GetUID(), time.Now()
	before := r.requests[workload]
	delete(r.requests, workload)
	if awaits := plan.AwaitsLimit; awaits.Count() > 0 {
		if r.requests == nil {
			r.requests = map[types.UID]request{}
		}
		r.requests[workload] = request{requestOf(rollout, plan, awaits.Pods, awaits.Most), now, before.woken, wake}
	}
	if len(r.requests) == 0 {
		return nil
	}
	seen, err := r.seen(ctx, now)
	if err != nil {
		return err
	}
	r.wake(seen.Divide(), now)
	return nil
}

func requestOf(rollout kinds.Rollout, plan steps.Plan, pods []*corev1.Pod, most int) concurrency.Request {
	workload, known := rollout.Workload(), readiness.NodesByName(rollout.Snapshot().Nodes)
	made := concurrency.Request{Workload: workload.GetUID(), Namespace: workload.GetNamespace(), Started: plan.Progress.Started, Most: most}
	for _, pod := range pods {
		made.Pods = append(made.Pods, concurrency.PodOf(pod, known[pod.Spec.NodeName]))
	}
	return made
}

func (r *Restarts) wake(permitted concurrency.Permitted, now time.Time) {
	for workload := range permitted {
		if one := r.requests[workload]; now.Sub(one.woken) >= wakeAgain {
			one.woken = now
			r.requests[workload] = one
			one.wake()
		}
	}
}

// Confirm leaves out the steps that take a pod out of service that may not restart now. It returns false if there are such steps. The
// others have their permission until settle is called with what became of them.
func (r *Restarts) Confirm(
	ctx context.Context, rollout kinds.Rollout, plan steps.Plan, todo []steps.Step,
) (kept []steps.Step, settle func(write.Outcome), confirmed bool) {
	now := time.Now()
	var pods []*corev1.Pod
	for _, step := range todo {
		if pod := concurrency.Disrupted(step, now); pod != nil {
			pods = append(pods, pod)
		}
	}
	if r == nil || len(pods) == 0 {
		return todo, func(write.Outcome) {}, true
	}
	given, err := r.give(ctx, rollout, plan, pods, now)
	if err != nil {
		log.FromContext(ctx).Error(err, "Restarting pods cannot be counted: no pod is taken out of service")
	}
	kept = slices.DeleteFunc(slices.Clone(todo), func(step steps.Step) bool {
		pod := concurrency.Disrupted(step, now)
		return pod != nil && !given[pod.UID]
	})
	return kept, func(done write.Outcome) { r.settle(given, done) }, len(kept) == len(todo)
}

// give gives those of the pods a permission that may restart now.
func (r *Restarts) give(
	ctx context.Context, rollout kinds.Rollout, plan steps.Plan, pods []*corev1.Pod, now time.Time,
) (map[types.UID]bool, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if now.Sub(r.since) < settling {
		return nil, nil
	}
	seen, err := r.seen(ctx, now)
	if err != nil {
		return nil, err
	}
	given := map[types.UID]bool{}
	pods = slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool {
		_, has := r.given[pod.UID]
		if has {
			given[pod.UID] = true
		}
		return has
	})
	own := requestOf(rollout, plan, pods, len(pods))
	seen.Requests = slices.DeleteFunc(seen.Requests, func(other concurrency.Request) bool { return other.Workload == own.Workload })
	seen.Requests = append(seen.Requests, own)
	for _, pod := range seen.Divide()[own.Workload] {
		at := slices.IndexFunc(pods, func(one *corev1.Pod) bool { return one.UID == pod.UID })
		given[pod.UID] = true
		r.note(permission{inFlight, client.ObjectKeyFromObject(pods[at]), pod})
	}
	return given, nil
}

// note remembers a permission that was given.
func (r *Restarts) note(one permission) {
	if r.given == nil {
		r.given, r.latest = map[types.UID]permission{}, map[string]int{}
	}
	r.number++
	r.given[one.pod.UID], r.latest[one.pod.Namespace] = one, r.number
}

// settle notes how far the pods are that were permitted. One that was not written has its permission no longer.
func (r *Restarts) settle(given map[types.UID]bool, done write.Outcome) {
	r.lock.Lock()
	defer r.lock.Unlock()
	for uid := range given {
		after, written := stateAfter(done, uid)
		if !written {
			delete(r.given, uid)
			continue
		}
		one := r.given[uid]
		one.state = after
		r.given[uid] = one
	}
}
