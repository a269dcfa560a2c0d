package allowance

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stayput/stayput/controller/kinds"
	"github.com/stayput/stayput/controller/write"
	"github.com/stayput/stayput/inplace/disruption"
	"github.com/stayput/stayput/inplace/steps"
)

// reader reads what PodDisruptionBudgets are about; see observe.Reader.
type reader interface {
	DisruptionBudgets(ctx context.Context, namespace string) ([]*policyv1.PodDisruptionBudget, error)
	NamespacePods(ctx context.Context, namespace string) ([]*corev1.Pod, error)
}

// Room is where pods of all workloads get their allowance. A nil Room knows no PodDisruptionBudgets.
type Room struct {
	// Cached reads the cache, Live the API server itself.
	Cached, Live reader

	lock       sync.Mutex
	namespaces map[string]*namespace
}

// namespace has what was given in one namespace. Its lock is its own: counting takes long where pods and PodDisruptionBudgets are many.
type namespace struct {
	sync.Mutex
	taken // nil until catchUp
}

func (r *Room) of(name string) *namespace {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.namespaces == nil {
		r.namespaces = map[string]*namespace{}
	}
	if r.namespaces[name] == nil {
		r.namespaces[name] = &namespace{}
	}
	return r.namespaces[name]
}

// Seen returns what a plan has to know of PodDisruptionBudgets. It returns nothing if the settings do not ask for them.
func (r *Room) Seen(ctx context.Context, rollout kinds.Rollout) (disruption.Seen, error) {
	in := rollout.Workload().GetNamespace()
	if r == nil || !rollout.Snapshot().Settings.DisruptionBudgets {
		return disruption.Seen{}, nil
	}
	budgets, err := r.Cached.DisruptionBudgets(ctx, in)
	if err != nil || len(budgets) == 0 {
		return disruption.Seen{}, err
	}
	there := r.of(in)
	there.Lock()
	defer there.Unlock()
	return r.seen(ctx, rollout, budgets, there.taken)
}

// seen adds the pods. The caller has the lock of the namespace.
func (r *Room) seen(
	ctx context.Context, rollout kinds.Rollout, budgets []*policyv1.PodDisruptionBudget, known taken,
) (disruption.Seen, error) {
	own := rollout.Snapshot()
	pods, err := r.Cached.NamespacePods(ctx, rollout.Workload().GetNamespace())
	return disruption.Seen{Budgets: budgets, Pods: whole(pods, own.Pods), Taken: known.now(pods, time.Now())}, err
}

// whole returns the pods, with those of the workload as they were read for its plan: the cache may have only outlines of them. A plan may
// be older than the cache. What is taken is compared with the cache, so a pod that has changed since counts as the cache shows it.
func whole(pods, own []*corev1.Pod) []*corev1.Pod {
	read := map[types.UID]*corev1.Pod{}
	for _, pod := range own {
		read[pod.UID] = pod
	}
	all := slices.Clone(pods)
	for i, pod := range all {
		if same := read[pod.UID]; same != nil && same.ResourceVersion == pod.ResourceVersion {
			all[i] = same
		}
	}
	return all
}

// Confirm leaves out the steps that take a pod out of service for which there is no allowance now. It returns false if there are such
// steps. The others have their allowance until settle is called with what became of them. If the PodDisruptionBudgets cannot be read, there
// is none: an update waits, since a native rollout would not ask them at all.
func (r *Room) Confirm(
	ctx context.Context, rollout kinds.Rollout, todo []steps.Step,
) (kept []steps.Step, settle func(write.Outcome), confirmed bool) {
	disrupts := func(step steps.Step) bool { return steps.Disrupted(step) != nil }
	if r == nil || !rollout.Snapshot().Settings.DisruptionBudgets || !slices.ContainsFunc(todo, disrupts) {
		return todo, func(write.Outcome) {}, true
	}
	kept, settle, err := r.give(ctx, rollout, todo)
	if err != nil {
		log.FromContext(ctx).Error(err, "PodDisruptionBudgets cannot be read: no pod is taken out of service")
		return slices.DeleteFunc(slices.Clone(todo), disrupts), func(write.Outcome) {}, false
	}
	return kept, settle, len(kept) == len(todo)
}

func (r *Room) give(ctx context.Context, rollout kinds.Rollout, todo []steps.Step) ([]steps.Step, func(write.Outcome), error) {
	in, now := rollout.Workload().GetNamespace(), time.Now()
	budgets, err := r.Live.DisruptionBudgets(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	there := r.of(in)
	if err := r.catchUp(ctx, in, there); err != nil {
		return nil, nil, err
	}
	there.Lock()
	defer there.Unlock()
	seen, err := r.seen(ctx, rollout, budgets, there.taken)
	if err != nil {
		return nil, nil, err
	}
	allowed := seen.Of(rollout.Snapshot().Pods, now)
	var kept []steps.Step
	given := taken{}
	for _, step := range todo {
		if pod := steps.Disrupted(step); pod != nil {
			if refused := allowed.Take(seen, pod, now); refused != (disruption.Refusal{}) {
				log.FromContext(ctx).V(1).Info("The pod stays in service", "pod", pod.Name, "reason", refused.String())
				continue
			}
			given[pod.UID] = there.taken[pod.UID]
			there.taken[pod.UID] = inFlight
		}
		kept = append(kept, step)
	}
	return kept, func(done write.Outcome) { there.settle(given, done) }, nil
}

// settle notes which version the pods have reached that were given an allowance, given how far they were before. One that was certainly
// not written has it no longer.
func (n *namespace) settle(given taken, done write.Outcome) {
	n.Lock()
	defer n.Unlock()
	for uid, before := range given {
		if n.taken[uid] = stateAfter(done, uid, before); n.taken[uid] == inFlight {
			delete(n.taken, uid)
		}
	}
}

// catchUp has all pods of the namespace count as taken of which the cache is older than the API server, once.
func (r *Room) catchUp(ctx context.Context, in string, there *namespace) error {
	there.Lock()
	known := there.taken != nil
	there.Unlock()
	if known {
		return nil
	}
	current, err := r.Live.NamespacePods(ctx, in)
	if err != nil {
		return err
	}
	reached, until := taken{}, time.Now().Add(doubtful)
	for _, pod := range current {
		reached[pod.UID] = state{version: pod.ResourceVersion, until: until}
	}
	there.Lock()
	defer there.Unlock()
	if there.taken == nil {
		there.taken = reached
	}
	return nil
}
