package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stayput/stayput/controller/write"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/steps"
)

// planOf returns a plan. If the plan needs a dry run, planOf plans again with its result. If pods are to be created, it
// plans again with the quotas.
func (r *Reconciler) planOf(ctx context.Context, workload types.NamespacedName, rollout engine.Rollout) (steps.Plan, error) {
	remembered := r.memories.recall(workload)
	endpoints, err := r.drains.Endpoints(ctx, remembered, rollout)
	if err != nil {
		return steps.Plan{}, err
	}
	remembered.Observe(rollout.Snapshot().Pods, time.Now())
	seen := rollout.Snapshot()
	seen.Endpoints, seen.TakenOut, seen.Batches = endpoints, remembered.TakenOut, remembered.Batches
	seen.Fallback = remembered.KnownFallback(seen.Fallback)
	if err := r.broker.See(ctx, rollout); err != nil {
		return steps.Plan{}, err
	}
	plan, err := r.planWithQuotas(ctx, workload, rollout)
	remembered.Planned(plan, time.Now())
	return plan, errors.Join(err, r.broker.Planned(ctx, rollout, plan, func() { r.wake(rollout.Workload()) }))
}

// wake has a workload planned again, because its pods may restart now. If too many are woken already, its next look comes later.
func (r *Reconciler) wake(workload client.Object) {
	select {
	case r.woken <- event.GenericEvent{Object: workload}:
	default:
	}
}

func (r *Reconciler) planWithQuotas(ctx context.Context, workload types.NamespacedName, rollout engine.Rollout) (steps.Plan, error) {
	pull := &rollout.Snapshot().Pull
	pull.Refused = r.memories.recall(workload).PrePullRefused
	plan := r.planWithDryRun(ctx, workload, rollout)
	if !slices.ContainsFunc(plan.Steps, write.CreatesPrePullPod) {
		return plan, nil
	}
	quotas, err := r.namespaces.Quotas(ctx, workload.Namespace)
	if err != nil {
		return plan, err
	}
	pull.Quotas = quotas
	return rollout.Plan(), nil
}

// noteRefusal notes that no images are pulled in advance for an update revision, and reports whether it did. If there are
// pre-pull pods already, a refusal of one more only says that a quota is full, and is not noted. But if another pod has the
// name of a pre-pull pod, it is noted, because that does not change.
func (r *Reconciler) noteRefusal(workload types.NamespacedName, rollout engine.Rollout, done write.Outcome) (noted bool) {
	created := slices.ContainsFunc(done.Writes, func(w write.Done) bool { return write.CreatesPrePullPod(w.Step) })
	enough := created || len(rollout.Snapshot().Pull.PrePullPods) > 0
	if done.Unpulled.Why == "" || enough && !done.Taken {
		return false
	}
	r.memories.recall(workload).PrePullRefused = done.Unpulled
	return true
}
