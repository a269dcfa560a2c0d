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

	"github.com/stayput/stayput/controller/write"
	"github.com/stayput/stayput/inplace/concurrency"
	"github.com/stayput/stayput/inplace/disruption"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

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
	reserved reservations
	line     line
	// namespaces have locks of their own, which are taken first: counting takes long where pods and PodDisruptionBudgets are many.
	namespaces sync.Map
}

// See has the snapshot of a workload say what limits and PodDisruptionBudgets leave for it.
func (b *Broker) See(ctx context.Context, rollout engine.Rollout) error {
	if !b.concerns(rollout) {
		return nil
	}
	budgets, err := budgetsOf(ctx, b.Cached, rollout)
	if err != nil {
		return err
	}
	seen := rollout.Snapshot()
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

// concerns reports whether the workload's pods need room.
func (b *Broker) concerns(rollout engine.Rollout) bool {
	return b != nil && (len(b.Limits) > 0 || rollout.Snapshot().Settings.DisruptionBudgets)
}

// budgetsOf returns the PodDisruptionBudgets that count for the workload; none if its settings do not ask for them.
func budgetsOf(ctx context.Context, from reader, rollout engine.Rollout) ([]*policyv1.PodDisruptionBudget, error) {
	if !rollout.Snapshot().Settings.DisruptionBudgets {
		return nil, nil
	}
	return from.DisruptionBudgets(ctx, rollout.Workload().GetNamespace())
}

// Planned notes that a limit keeps pods of the workload in service, if its plan says so. Wake has the workload planned again: it is called
// when there is room for them.
func (b *Broker) Planned(ctx context.Context, rollout engine.Rollout, plan steps.Plan, wake func()) error {
	waits := plan.WaitsFor(steps.FilterLimit)
	if b == nil || len(waits) == 0 {
		return nil
	}
	pod := waits[0].Pod
	b.lock.Lock()
	defer b.lock.Unlock()
	node := readiness.NodesByName(rollout.Snapshot().Nodes)[pod.Spec.NodeName]
	b.line.join(rollout.Workload().GetUID(), concurrency.PodOf(pod, node), wake)
	_, err := b.share(ctx, "") // there may be room since the plan was made
	return err
}

// Reserve leaves out the steps that take a pod out of service for which there is no room. It returns false if there are such steps. The
// others have their room until settle is called with what became of them. If pods or PodDisruptionBudgets cannot be read, there is no room:
// an update waits, since a native rollout would ask neither.
func (b *Broker) Reserve(
	ctx context.Context, rollout engine.Rollout, todo []steps.Step,
) (kept []steps.Step, settle func(write.Outcome), all bool) {
	disrupts := func(step steps.Step) bool { return steps.Disrupted(step) != nil }
	if !b.concerns(rollout) || !slices.ContainsFunc(todo, disrupts) {
		return todo, func(write.Outcome) {}, true
	}
	kept, before, err := b.reserve(ctx, rollout, todo)
	if err != nil {
		log.FromContext(ctx).Error(err, "No pod is taken out of service: limits or PodDisruptionBudgets cannot be counted")
		kept = slices.DeleteFunc(slices.Clone(todo), disrupts)
	}
	return kept, func(done write.Outcome) { b.settle(ctx, before, done) }, len(kept) == len(todo)
}

// reserve returns the steps that are kept, and what was reserved for their pods before.
func (b *Broker) reserve(ctx context.Context, rollout engine.Rollout, todo []steps.Step) ([]steps.Step, reservations, error) {
	budgets, err := budgetsOf(ctx, b.Live, rollout)
	if err != nil {
		return nil, nil, err
	}
	there, _ := b.namespaces.LoadOrStore(rollout.Workload().GetNamespace(), &sync.Mutex{})
	there.(*sync.Mutex).Lock()
	defer there.(*sync.Mutex).Unlock()
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
	if b.reserved == nil {
		b.reserved = reservations{}
	}
	young := time.Since(b.since) < doubtful && (share != nil || len(budgets) > 0)
	kept, before := b.take(rollout, todo, []engine.Reserver{share, allowed}, young)
	return kept, before, nil
}

// take reserves room for the pods, as far as those that count them leave room. A young leader leaves pods that serve alone. The caller has
// the lock.
func (b *Broker) take(
	rollout engine.Rollout, todo []steps.Step, shared []engine.Reserver, young bool,
) (kept []steps.Step, before reservations) {
	nodes, now, before := readiness.NodesByName(rollout.Snapshot().Nodes), time.Now(), reservations{}
	kept = slices.DeleteFunc(slices.Clone(todo), func(step steps.Step) bool {
		pod := steps.Disrupted(step)
		if pod == nil {
			return false
		}
		node, serves := nodes[pod.Spec.NodeName], concurrency.NeedsPermission(pod, now)
		refuses := func(r engine.Reserver) bool { return r.Wait(pod, node, now) != nil }
		if serves && young || slices.ContainsFunc(shared, refuses) {
			return true
		}
		for _, each := range shared {
			each.Reserve(pod, node, now)
		}
		limited := serves && len(b.Limits) > 0
		if limited {
			b.line.leave(rollout.Workload().GetUID())
		}
		before[pod.UID] = b.reserved[pod.UID]
		b.reserved[pod.UID] = reservation{inFlight, client.ObjectKeyFromObject(pod), concurrency.PodOf(pod, node), limited}
		return false
	})
	return kept, before
}

// settle notes how far the pods are for which room was reserved, given how far they were before. What was certainly not written is given
// back.
func (b *Broker) settle(ctx context.Context, before reservations, done write.Outcome) {
	b.lock.Lock()
	defer b.lock.Unlock()
	for uid, was := range before {
		one, exists := b.reserved[uid]
		if one.state = stateAfter(done, uid, was.state); !exists || one.state == inFlight {
			delete(b.reserved, uid)
			continue
		}
		b.reserved[uid] = one
	}
	if _, err := b.share(context.WithoutCancel(ctx), ""); err != nil {
		log.FromContext(ctx).Error(err, "Workloads that wait for a limit look again later: pods cannot be counted")
	}
}

// disruption returns what is known about the PodDisruptionBudgets.
func (b *Broker) disruption(
	ctx context.Context, rollout engine.Rollout, budgets []*policyv1.PodDisruptionBudget,
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

// share returns what limits leave for a workload besides those that wait since before it, and wakes these. The caller has the lock.
func (b *Broker) share(ctx context.Context, workload types.UID) (*concurrency.Share, error) {
	if len(b.Limits) == 0 {
		return nil, nil
	}
	if err := b.reserved.forgetShown(ctx, b.Cached); err != nil {
		return nil, err
	}
	pods, err := b.Cached.RestartingPods(ctx)
	if err != nil {
		return nil, err
	}
	nodes, err := b.Cached.NodesOf(ctx, pods)
	share, byName, now := b.Limits.Share(), readiness.NodesByName(nodes), time.Now()
	for _, pod := range pods {
		if concurrency.Counts(pod, now) {
			share.Count(concurrency.PodOf(pod, byName[pod.Spec.NodeName]))
		}
	}
	for _, one := range b.reserved {
		if one.limited {
			share.Count(one.pod)
		}
	}
	b.line.ahead(share, workload, now)
	return share, err
}
