package allowance

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stayput/stayput/controller/kinds"
	"github.com/stayput/stayput/controller/write"
	"github.com/stayput/stayput/inplace/concurrency"
	"github.com/stayput/stayput/inplace/disruption"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// settling is for how long a new leader reserves nothing under limits: its cache may not show yet what the one before has written last.
const settling = 5 * time.Second

// reader reads what limits and PodDisruptionBudgets count; see observe.Reader.
type reader interface {
	DisruptionBudgets(ctx context.Context, namespace string) ([]*policyv1.PodDisruptionBudget, error)
	NamespacePods(ctx context.Context, namespace string) ([]*corev1.Pod, error)
	RestartingPods(ctx context.Context) ([]*corev1.Pod, error)
	NodesOf(ctx context.Context, pods []*corev1.Pod) ([]*corev1.Node, error)
	VersionOf(ctx context.Context, pod types.NamespacedName, uid types.UID) (string, error)
}

// Broker reserves room for pods that are taken out of service, under limits and PodDisruptionBudgets. A nil Broker has neither.
type Broker struct {
	Limits concurrency.Limits
	// Cached reads the cache, Live the API server itself.
	Cached, Live reader

	lock sync.Mutex
	// since is when this leader first made a plan.
	since    time.Time
	reserved map[types.UID]reservation
	line     line
	// namespaces have locks of their own: counting takes long where pods and PodDisruptionBudgets are many. Theirs is taken before lock.
	namespaces map[string]*namespace
}

// namespace is one where pods are counted for PodDisruptionBudgets. It is known after catchUp.
type namespace struct {
	sync.Mutex
	known bool
}

func (b *Broker) of(name string) *namespace {
	b.lock.Lock()
	defer b.lock.Unlock()
	if b.namespaces == nil {
		b.namespaces, b.reserved = map[string]*namespace{}, map[types.UID]reservation{}
	}
	if b.namespaces[name] == nil {
		b.namespaces[name] = &namespace{}
	}
	return b.namespaces[name]
}

// See has the snapshot of a workload say what limits and PodDisruptionBudgets leave for it.
func (b *Broker) See(ctx context.Context, rollout kinds.Rollout) error {
	if b == nil {
		return nil
	}
	seen := rollout.Snapshot()
	budgets, err := budgetsOf(ctx, b.Cached, rollout)
	if err != nil {
		return err
	}
	if seen.Disruption, err = b.disruption(ctx, rollout, budgets); err != nil {
		return err
	}
	b.lock.Lock()
	defer b.lock.Unlock()
	if b.since.IsZero() {
		b.since = time.Now()
	}
	seen.Share, err = b.share(ctx, rollout.Workload().GetUID())
	return err
}

// Planned notes that a limit keeps pods of the workload in service, if its plan says so. Wake has the workload planned again: it is called
// when there is room for them.
func (b *Broker) Planned(ctx context.Context, rollout kinds.Rollout, plan steps.Plan, wake func()) error {
	pod := plan.AwaitsLimit.First
	if b == nil || pod == nil {
		return nil
	}
	b.lock.Lock()
	defer b.lock.Unlock()
	b.line.join(rollout.Workload().GetUID(), concurrency.PodOf(pod, nodesOf(rollout)[pod.Spec.NodeName]), wake)
	_, err := b.share(ctx, "") // there may be room since the plan was made
	return err
}

// Reserve leaves out the steps that take a pod out of service for which there is no room. It returns false if there are such steps. The
// others have their room until settle is called with what became of them. If pods or PodDisruptionBudgets cannot be read, there is no room:
// an update waits, since a native rollout would ask neither.
func (b *Broker) Reserve(
	ctx context.Context, rollout kinds.Rollout, todo []steps.Step,
) (kept []steps.Step, settle func(write.Outcome), all bool) {
	if b == nil || !slices.ContainsFunc(todo, disrupts) {
		return todo, func(write.Outcome) {}, true
	}
	kept, before, err := b.reserve(ctx, rollout, todo)
	if err != nil {
		log.FromContext(ctx).Error(err, "No pod is taken out of service: limits or PodDisruptionBudgets cannot be counted")
		kept = slices.DeleteFunc(slices.Clone(todo), disrupts)
	}
	return kept, func(done write.Outcome) { b.settle(ctx, before, done) }, len(kept) == len(todo)
}

func disrupts(step steps.Step) bool { return steps.Disrupted(step) != nil }

// reserve returns the steps that are kept, and how far their pods were before.
func (b *Broker) reserve(
	ctx context.Context, rollout kinds.Rollout, todo []steps.Step,
) (kept []steps.Step, before map[types.UID]state, err error) {
	budgets, err := budgetsOf(ctx, b.Live, rollout)
	if err != nil {
		return nil, nil, err
	}
	there := b.of(rollout.Workload().GetNamespace())
	there.Lock()
	defer there.Unlock()
	if err := b.catchUp(ctx, rollout.Workload().GetNamespace(), there, budgets); err != nil {
		return nil, nil, err
	}
	seen, err := b.disruption(ctx, rollout, budgets)
	if err != nil {
		return nil, nil, err
	}
	allowed := seen.Of(rollout.Snapshot().Pods, time.Now())
	b.lock.Lock()
	defer b.lock.Unlock()
	share, err := b.share(ctx, rollout.Workload().GetUID())
	if err != nil {
		return nil, nil, err
	}
	kept, before = b.take(ctx, todo, asked{rollout.Workload().GetUID(), seen, allowed, share, nodesOf(rollout)})
	return kept, before, nil
}

// asked is what allows that pods of a workload are taken out of service.
type asked struct {
	workload types.UID
	seen     disruption.Seen
	allowed  disruption.Budgets
	share    *concurrency.Share
	nodes    map[string]*corev1.Node
}

// take reserves room for the pods. The caller has the lock.
func (b *Broker) take(ctx context.Context, todo []steps.Step, a asked) (kept []steps.Step, before map[types.UID]state) {
	now, young := time.Now(), len(b.Limits) > 0 && time.Since(b.since) < settling
	before = map[types.UID]state{}
	for _, step := range todo {
		pod := steps.Disrupted(step)
		if pod == nil {
			kept = append(kept, step)
			continue
		}
		node, needs := a.nodes[pod.Spec.NodeName], concurrency.NeedsPermission(pod, now)
		if young && needs || a.share.Refusal(pod, node, now) != (concurrency.Refusal{}) {
			continue
		}
		if refused := a.allowed.Take(a.seen, pod, now); refused != (disruption.Refusal{}) {
			log.FromContext(ctx).V(1).Info("The pod stays in service", "pod", pod.Name, "reason", refused.String())
			continue
		}
		if a.share.Take(pod, node, now); needs {
			b.line.leave(a.workload)
		}
		before[pod.UID] = b.reserved[pod.UID].state
		b.reserved[pod.UID] = reservation{inFlight, client.ObjectKeyFromObject(pod), concurrency.PodOf(pod, node), needs}
		kept = append(kept, step)
	}
	return kept, before
}

// settle notes how far the pods are for which room was reserved, given how far they were before. What was certainly not written is given
// back.
func (b *Broker) settle(ctx context.Context, before map[types.UID]state, done write.Outcome) {
	b.lock.Lock()
	defer b.lock.Unlock()
	for uid, was := range before {
		one, exists := b.reserved[uid]
		if one.state = stateAfter(done, uid, was); !exists || one.state == inFlight {
			delete(b.reserved, uid)
			continue
		}
		b.reserved[uid] = one
	}
	if _, err := b.share(context.WithoutCancel(ctx), ""); err != nil {
		log.FromContext(ctx).Error(err, "Workloads that wait for a limit look again later: pods cannot be counted")
	}
}

// share returns what limits leave for a workload besides those that wait since before it, and wakes these. The caller has the lock.
func (b *Broker) share(ctx context.Context, workload types.UID) (*concurrency.Share, error) {
	now := time.Now()
	if len(b.Limits) == 0 {
		return nil, nil
	}
	if err := b.forgetShown(ctx, now); err != nil {
		return nil, err
	}
	pods, err := b.Cached.RestartingPods(ctx)
	if err != nil {
		return nil, err
	}
	pods = slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return !concurrency.Counts(pod, now) })
	nodes, err := b.Cached.NodesOf(ctx, pods)
	if err != nil {
		return nil, err
	}
	share, byName := b.Limits.Share(), readiness.NodesByName(nodes)
	for _, pod := range pods {
		share.Count(concurrency.PodOf(pod, byName[pod.Spec.NodeName]))
	}
	for _, one := range b.reserved {
		if one.limited {
			share.Count(one.pod)
		}
	}
	b.line.ahead(share, workload, now)
	return share, nil
}

// budgetsOf returns the PodDisruptionBudgets that count for the workload; none if its settings do not ask for them.
func budgetsOf(ctx context.Context, from reader, rollout kinds.Rollout) ([]*policyv1.PodDisruptionBudget, error) {
	if !rollout.Snapshot().Settings.DisruptionBudgets {
		return nil, nil
	}
	return from.DisruptionBudgets(ctx, rollout.Workload().GetNamespace())
}

// disruption returns what is known about the PodDisruptionBudgets.
func (b *Broker) disruption(
	ctx context.Context, rollout kinds.Rollout, budgets []*policyv1.PodDisruptionBudget,
) (disruption.Seen, error) {
	if len(budgets) == 0 {
		return disruption.Seen{}, nil
	}
	taken, err := b.taken(ctx)
	if err != nil {
		return disruption.Seen{}, err
	}
	pods, err := b.Cached.NamespacePods(ctx, rollout.Workload().GetNamespace())
	return disruption.Seen{Budgets: budgets, Pods: whole(pods, rollout.Snapshot().Pods), Taken: taken}, err
}

// whole returns the pods, with those of the workload as they were read for its plan: the cache may have only outlines of them. A plan may
// be older than the cache. What is reserved is compared with the cache, so a pod that has changed since counts as the cache shows it.
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

// nodesOf returns the nodes that were read for a plan, by name.
func nodesOf(rollout kinds.Rollout) map[string]*corev1.Node {
	return readiness.NodesByName(rollout.Snapshot().Nodes)
}
