package allowance

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stayput/stayput/controller/kinds"
	"github.com/stayput/stayput/controller/write"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/concurrency"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

const (
	// settling is for how long a new leader gives no permission: its cache may not show yet what the one before has written last.
	settling = 5 * time.Second
	// remembered is for how long a request counts that is not made again. Plans of workloads whose pods wait are made more often.
	remembered = time.Minute
	// collecting is for how long pods are kept permitted for a workload that was woken, or whose plan takes them out of service.
	collecting = 5 * time.Second
	// lookEvery is how often places are looked for that have become free although no plan says so: a pod no longer counts because of its age,
	// a turn is over, or the workload of a pod that came back has not been planned yet.
	lookEvery = time.Second
	// wakeAgain is how long after a workload was woken it may be woken again.
	wakeAgain = 100 * time.Millisecond
	// mostLatest is of how many namespaces the number of the last permission is remembered at least.
	mostLatest = 10_000
)

// restartReader reads the cache; see observe.Reader.
type restartReader interface {
	RestartingPods(ctx context.Context) ([]*corev1.Pod, error)
	NodesOf(ctx context.Context, pods []*corev1.Pod) ([]*corev1.Node, error)
	VersionOf(ctx context.Context, pod types.NamespacedName, uid types.UID) (string, error)
}

// Restarts is where pods of all workloads get their permission to restart, as far as limits require one, or the load of the leader. A nil
// Restarts has no limits.
type Restarts struct {
	Limits concurrency.Limits
	// Load bounds how many pods are out of service where there are no limits.
	Load   *Load
	Cached restartReader

	lock sync.Mutex
	// since is when this leader first made a plan.
	since time.Time
	// given are the pods with a permission, until the cache shows what was written to them.
	given map[types.UID]permission
	// out has since when pods are out of service.
	out      map[types.UID]time.Time
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

// request is about pods that wait, or that are about to get their permission.
type request struct {
	concurrency.Request
	at, woken time.Time
	// taking: the plan takes pods out of service. The workload need not be woken for them.
	taking bool
	// wake has the workload planned again.
	wake func()
}

// over reports whether the request no longer counts: the workload has not been planned again.
func (r request) over(now time.Time) bool {
	called := r.taking || r.woken.After(r.at)
	return now.Sub(r.at) > remembered || called && now.Sub(inplace.Latest(r.at, r.woken)) > collecting
}

// promise returns how many pods of the workload were told that they may restart, and still may collect that.
func (r request) promise(now time.Time) int {
	if now.Sub(r.woken) > collecting {
		return 0
	}
	return r.Promised
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
	return unlessAlone(seen, rollout).ShareOf(rollout.Workload().GetUID()), err
}

// seen returns what was observed of all workloads. The caller has the lock.
func (r *Restarts) seen(ctx context.Context, now time.Time) (concurrency.Seen, error) {
	seen := concurrency.Seen{Limits: r.Limits, Bound: r.Load.bound(), Latest: r.latest, Requests: r.waiting(now)}
	if err := r.dropShown(ctx, now); err != nil { // before pods are listed: what is dropped is then listed in that version, or a later one
		return seen, err
	}
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
		one := concurrency.PodOf(pod, byName[pod.Spec.NodeName])
		one.Slow = concurrency.IsSlow(pod, now)
		seen.Restarting = append(seen.Restarting, one)
	}
	for uid, one := range r.given {
		if !counted[uid] {
			counted[uid] = true
			seen.Restarting = append(seen.Restarting, one.pod)
		}
	}
	r.measure(counted, now)
	return seen, nil
}

// measure notes which pods have come back, given those that are out of service.
func (r *Restarts) measure(out map[types.UID]bool, now time.Time) {
	for uid, since := range r.out {
		if !out[uid] {
			r.Load.cameBack(now.Sub(since))
			delete(r.out, uid)
		}
	}
}

// unlessAlone returns what was observed, without the bound if no pod of another workload is out of service or waits.
func unlessAlone(seen concurrency.Seen, rollout kinds.Rollout) concurrency.Seen {
	if seen.Bound > 0 && alone(seen, rollout) {
		seen.Bound = 0
	}
	return seen
}

// alone reports whether all that was observed is about the workload. Its own pods, of which there may be thousands, are looked at last.
func alone(seen concurrency.Seen, rollout kinds.Rollout) bool {
	workload := rollout.Workload().GetUID()
	if slices.ContainsFunc(seen.Requests, func(request concurrency.Request) bool { return request.Workload != workload }) {
		return false
	}
	others := map[types.UID]bool{}
	for _, pod := range seen.Restarting {
		others[pod.UID] = true
	}
	for _, pod := range rollout.Snapshot().Pods {
		if len(others) == 0 {
			break
		}
		delete(others, pod.UID)
	}
	return len(others) == 0
}

// dropShown drops the permissions of pods of which the cache shows what was written to them.
func (r *Restarts) dropShown(ctx context.Context, now time.Time) error {
	for uid, one := range r.given {
		version, err := r.Cached.VersionOf(ctx, one.key, uid)
		if err != nil {
			return err
		}
		if version == "" || !one.outlasts(version, now) {
			delete(r.given, uid)
		}
	}
	return nil
}

// waiting returns the requests that still count, and forgets the others.
func (r *Restarts) waiting(now time.Time) (all []concurrency.Request) {
	for uid, one := range r.requests {
		if one.over(now) {
			delete(r.requests, uid)
			continue
		}
		one.Promised = one.promise(now)
		all = append(all, one.Request)
	}
	return all
}

// Planned notes which pods of a workload wait, and which are taken out of service, as its plan says. It wakes the workloads whose pods may
// restart now. Turns are kept until Confirm is called.
func (r *Restarts) Planned(ctx context.Context, rollout kinds.Rollout, plan steps.Plan, wake func()) error {
	if r == nil {
		return nil
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	workload, now := rollout.Workload().GetUID(), time.Now()
	before := r.requests[workload]
	delete(r.requests, workload)
	taken := slices.DeleteFunc(next(plan, now), func(pod *corev1.Pod) bool { _, has := r.given[pod.UID]; return has })
	if most := len(taken) + plan.AwaitsLimit.Count(); most > 0 {
		if r.requests == nil {
			r.requests = map[types.UID]request{}
		}
		made := request{requestOf(rollout, plan, append(taken, plan.AwaitsLimit.Pods...), most), now, before.woken, len(taken) > 0, wake}
		made.Promised = min(before.Promised, most)
		r.requests[workload] = made
	}
	return r.look(ctx, now)
}

// next returns the pods that the plan takes out of service, now or in a moment.
func next(plan steps.Plan, now time.Time) []*corev1.Pod {
	pods := slices.Clone(plan.Next)
	for _, step := range plan.Steps {
		if pod := concurrency.Disrupted(step, now); pod != nil && plan.Confirmed() {
			pods = append(pods, pod)
		}
	}
	return pods
}

// Start looks for free places until the context ends. It implements manager.Runnable.
func (r *Restarts) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lookEvery):
		}
		if err := r.lookNow(ctx); err != nil {
			log.FromContext(ctx).Error(err, "Restarting pods cannot be counted: workloads that wait are not woken")
		}
	}
}

func (r *Restarts) lookNow(ctx context.Context) error {
	r.lock.Lock()
	defer r.lock.Unlock()
	now := time.Now()
	seen, err := r.seen(ctx, now)
	if err != nil {
		return err
	}
	quick := slices.DeleteFunc(slices.Clone(seen.Restarting), func(pod concurrency.Pod) bool { return pod.Slow })
	r.Load.tick(len(seen.Restarting), len(quick), len(seen.Requests) > 0)
	r.wake(seen.Divide(), now)
	return nil
}

// look wakes the workloads whose pods may restart now. The caller has the lock.
func (r *Restarts) look(ctx context.Context, now time.Time) error {
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

// wake promises the pods their places, and wakes their workloads unless these take the pods out of service anyway.
func (r *Restarts) wake(permitted concurrency.Permitted, now time.Time) {
	for workload, pods := range permitted {
		one := r.requests[workload]
		switch {
		case !one.woken.Before(one.at), !one.taking && now.Sub(one.woken) < wakeAgain:
			continue
		case !one.taking:
			one.wake()
		}
		one.woken, one.Promised = now, len(pods)
		r.requests[workload] = one
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
		if pod == nil {
			return false
		}
		_, permitted := given[pod.UID]
		return !permitted
	})
	return kept, func(done write.Outcome) { r.settle(ctx, given, done) }, len(kept) == len(todo)
}

// give gives those of the pods a permission that may restart now. It returns how far they were before.
func (r *Restarts) give(
	ctx context.Context, rollout kinds.Rollout, plan steps.Plan, pods []*corev1.Pod, now time.Time,
) (map[types.UID]state, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if len(r.Limits) > 0 && now.Sub(r.since) < settling {
		return nil, nil
	}
	seen, err := r.seen(ctx, now)
	if err != nil {
		return nil, err
	}
	given := map[types.UID]state{}
	pods = slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool {
		one, has := r.given[pod.UID]
		if has {
			given[pod.UID], one.state = one.state, inFlight
			r.given[pod.UID] = one
		}
		return has
	})
	own := requestOf(rollout, plan, pods, len(pods))
	own.Promised = min(r.requests[own.Workload].promise(now), len(pods))
	seen.Requests = slices.DeleteFunc(seen.Requests, func(other concurrency.Request) bool { return other.Workload == own.Workload })
	seen.Requests = append(seen.Requests, own)
	seen = unlessAlone(seen, rollout)
	for _, pod := range seen.Divide()[own.Workload] {
		at := slices.IndexFunc(pods, func(one *corev1.Pod) bool { return one.UID == pod.UID })
		given[pod.UID] = inFlight
		r.note(permission{inFlight, client.ObjectKeyFromObject(pods[at]), pod})
	}
	r.collected(own.Workload, given)
	return given, nil
}

// collected drops the pods that have their permission from the workload's request. The others wait for theirs.
func (r *Restarts) collected(workload types.UID, given map[types.UID]state) {
	one, waits := r.requests[workload]
	if !waits {
		return
	}
	before := len(one.Pods)
	if one.taking && before > len(given) {
		one.taking, one.woken = false, time.Time{} // so that it is woken for what it did not get
	}
	one.Pods = slices.DeleteFunc(slices.Clone(one.Pods), func(pod concurrency.Pod) bool { _, has := given[pod.UID]; return has })
	collected := before - len(one.Pods)
	one.Most, one.Promised = one.Most-collected, max(0, one.Promised-collected)
	r.requests[workload] = one
	if one.Most <= 0 || len(one.Pods) == 0 {
		delete(r.requests, workload)
	}
}

// note remembers a permission that was given.
func (r *Restarts) note(one permission) {
	if r.given == nil {
		r.given, r.latest, r.out = map[types.UID]permission{}, map[string]int{}, map[types.UID]time.Time{}
	}
	r.number++
	r.out[one.pod.UID] = time.Now()
	r.given[one.pod.UID], r.latest[one.pod.Namespace] = one, r.number
	if len(r.latest) > 2*mostLatest { // a namespace that is forgotten comes before all others, as it did
		maps.DeleteFunc(r.latest, func(_ string, number int) bool { return number <= r.number-mostLatest })
	}
}

// settle notes how far the pods are that were permitted, given how far they were before. One that was certainly not written has its
// permission no longer, and others may have its place.
func (r *Restarts) settle(ctx context.Context, given map[types.UID]state, done write.Outcome) {
	r.lock.Lock()
	defer r.lock.Unlock()
	free := false
	for uid, before := range given {
		one := r.given[uid]
		if one.state = stateAfter(done, uid, before); one.state == inFlight {
			delete(r.given, uid)
			delete(r.out, uid)
			free = true
			continue
		}
		r.given[uid] = one
	}
	if !free {
		return
	}
	if err := r.look(context.WithoutCancel(ctx), time.Now()); err != nil {
		log.FromContext(ctx).Error(err, "Restarting pods cannot be counted: workloads that wait are not woken")
	}
}
