package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stayput/stayput/controller/drain"
	"github.com/stayput/stayput/controller/report"
	"github.com/stayput/stayput/controller/write"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/controller/kinds"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/prepull"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// lookAgain bounds how long an outdated cache keeps a workload waiting. Normally the event it waits for comes first.
const lookAgain = 2 * time.Second

// soon is at once, by way of the queue.
const soon = time.Millisecond

// Reconciler updates the workloads of one kind in place. It runs on the leader only.
type Reconciler struct {
	// cached reads the cache, live the API server itself, which need not say anything of nodes.
	cached, live kinds.Source
	drains       *drain.Drains
	namespaces   namespaceReader
	leadership   leadership
	// gone are the workloads on record that are no more, by the cache. None is on record that it did not have.
	gone func(context.Context) ([]types.UID, error)
	// refusals are the targets for which the API server takes no pullers.
	refusals notes[prepull.Refused]
	dryRuns  notes[asked]
	// refusedOld are revisions to which pods would go back, and of which no new pod is admitted.
	refusedOld notes[asked]
	aheads     notes[readiness.Ahead]
	batches    notes[steps.Batches]
	failing    failing
	// notBefore are until when large workloads are left alone.
	notBefore notes[time.Time]
	writer    write.Writer
	Reporter  *report.Reporter
}

// Reconcile looks at one workload, unless it rests: then it does so in the end, whatever has happened meanwhile. No worker waits for that.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if left := time.Until(r.notBefore.of(request.NamespacedName)); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	rollout, err := r.cached(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if rollout == nil {
		r.forget(request.NamespacedName)
		return reconcile.Result{}, r.forgetFallbacks(ctx)
	}
	result, err := r.look(ctx, request.NamespacedName, rollout)
	if rest := steps.MinInterval(len(rollout.Snapshot().Pods)); err == nil && rest > 0 {
		r.notBefore.note(request.NamespacedName, time.Now().Add(rest))
	}
	return result, err
}

// forget forgets a workload that is gone.
func (r *Reconciler) forget(workload types.NamespacedName) {
	r.writer.Memory.Forget(workload)
	r.drains.Forget(workload)
	r.refusals.forget(workload)
	r.failing.forget(workload)
	r.dryRuns.forget(workload)
	r.refusedOld.forget(workload)
	r.aheads.forget(workload)
	r.batches.forget(workload)
	r.notBefore.forget(workload)
	r.Reporter.Gone(workload)
}

// forgetFallbacks ends the records of workloads that are gone. A name does not tell which.
func (r *Reconciler) forgetFallbacks(ctx context.Context) error {
	gone, err := r.gone(ctx)
	if err != nil {
		return err
	}
	return r.writer.Forget(ctx, gone)
}

// look takes the steps that are due. An update that has failed too long is given back.
func (r *Reconciler) look(ctx context.Context, workload types.NamespacedName, rollout kinds.Rollout) (reconcile.Result, error) {
	result, err := r.advance(ctx, workload, rollout)
	if err != nil && r.failing.tooLong(workload, time.Now()) && rollout.Decision().Held {
		why := fmt.Sprintf("it has failed for %s: %v", failingPatience, err)
		return r.fallBack(ctx, workload, rollout, inplace.Reason{Code: inplace.CodeFailing, Message: why})
	}
	return result, err
}

// advance plans on what was read, unless that is older than what is known to be, and carries the plan out.
func (r *Reconciler) advance(ctx context.Context, workload types.NamespacedName, rollout kinds.Rollout) (reconcile.Result, error) {
	if r.isStale(ctx, workload, rollout) {
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	}
	plan, err := r.plan(ctx, workload, rollout)
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(plan.Steps) > 0 && !r.writer.Memory.Knows(workload) {
		return r.catchUp(ctx, workload)
	}
	return r.execute(ctx, workload, rollout, plan)
}

// isStale reports whether the cache is behind what is known.
func (r *Reconciler) isStale(ctx context.Context, workload types.NamespacedName, rollout kinds.Rollout) bool {
	late := r.writer.Memory.Lagging(workload, rollout.Snapshot().Objects())
	if late == nil {
		return false
	}
	log.FromContext(ctx).V(1).Info("Waiting for the cache", "object", late.GetName(), "resourceVersion", late.GetResourceVersion())
	return true
}

// catchUp remembers the live versions of a workload's objects, before this process writes to it for the first time: the
// leader before us may have written what our cache does not show yet. Then it is planned anew, if it still exists.
func (r *Reconciler) catchUp(ctx context.Context, workload types.NamespacedName) (reconcile.Result, error) {
	current, err := r.live(ctx, workload)
	if err != nil {
		return reconcile.Result{}, err
	}
	if current == nil {
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	}
	r.writer.Memory.Remember(workload, current.Snapshot().Objects()...)
	return reconcile.Result{RequeueAfter: soon}, nil
}

// execute carries the plan out and reports what was done. If a step of an update is refused, the update is given back. Where
// there is nothing to give back, a refusal is an error like others.
func (r *Reconciler) execute(ctx context.Context, workload types.NamespacedName, rollout kinds.Rollout, plan steps.Plan) (reconcile.Result, error) {
	if !plan.Decision.Held {
		return r.finish(ctx, workload, rollout, plan, r.writer.CarryOut(ctx, workload, plan.Steps))
	}
	if overtaken, err := r.overtaken(ctx, rollout, plan); err != nil || overtaken {
		return reconcile.Result{RequeueAfter: lookAgain}, err
	}
	steps, confirmed := r.drains.Confirm(ctx, workload, rollout.Snapshot(), plan.Steps)
	term, end, err := r.term(ctx, plan)
	if err != nil {
		return reconcile.Result{}, err
	}
	defer end()
	done := r.writer.CarryOut(term, workload, steps)
	done.Outdated = done.Outdated || !confirmed
	var refused write.Refusal
	if !errors.As(done.Err, &refused) {
		return r.finish(ctx, workload, rollout, plan, done)
	}
	r.Reporter.Report(rollout, plan, done.Writes)
	return r.fallBack(ctx, workload, rollout, refused.Reason())
}

// fallBack gives the update back to the native controller.
func (r *Reconciler) fallBack(ctx context.Context, workload types.NamespacedName, rollout kinds.Rollout, why inplace.Reason) (reconcile.Result, error) {
	fallback := rollout.FallBack(why)
	return r.finish(ctx, workload, rollout, fallback, r.writer.CarryOut(ctx, workload, fallback.Steps))
}

// overtaken reports whether the workload was edited since it was read, or is no longer ours, if the plan takes pods out of service: the native
// controller, which may be at work already, counts on them.
func (r *Reconciler) overtaken(ctx context.Context, rollout kinds.Rollout, plan steps.Plan) (bool, error) {
	if !slices.ContainsFunc(plan.Steps, steps.Closes) {
		return false, nil
	}
	planned := rollout.Snapshot().Workload
	current, err := r.writer.Current(ctx, planned)
	if err != nil {
		return true, client.IgnoreNotFound(err)
	}
	mode, err := r.namespaces.Mode(ctx, planned.GetNamespace(), current.GetLabels())
	if err != nil {
		return true, client.IgnoreNotFound(err)
	}
	repartitioned := inplace.PartitionOf(current.GetLabels()) != inplace.PartitionOf(planned.GetLabels()) // labels make no generation
	return current.GetUID() != planned.GetUID() || current.GetGeneration() != planned.GetGeneration() || mode != rollout.Snapshot().Mode || repartitioned, nil
}

// leadership tells until when this process may write as the leader; see observe.Leadership.
type leadership interface {
	Ends(ctx context.Context) (ends time.Time, reason string, err error)
}

// term ends when the leader's Lease does, if the plan takes pods out of service: of two leaders each would keep the budget, and both not. Guards do not
// tell, since each closes the gates of other pods.
func (r *Reconciler) term(ctx context.Context, plan steps.Plan) (term context.Context, end context.CancelFunc, err error) {
	if !slices.ContainsFunc(plan.Steps, steps.Closes) {
		return ctx, func() {}, nil
	}
	ends, reason, err := r.leadership.Ends(ctx)
	if err != nil {
		return nil, nil, err
	}
	if reason != "" {
		return nil, nil, fmt.Errorf("no pod is taken out of service: %s", reason)
	}
	term, end = context.WithDeadlineCause(ctx, ends, write.ErrTermOver)
	return term, end, nil
}

// finish reports what was done and says when to look again.
func (r *Reconciler) finish(
	ctx context.Context, workload types.NamespacedName, rollout kinds.Rollout, plan steps.Plan, done write.Outcome,
) (reconcile.Result, error) {
	r.Reporter.Report(rollout, plan, done.Writes)
	log.FromContext(ctx).V(1).Info("Reconciled", "phase", plan.Phase, "message", plan.Message, "steps", len(plan.Steps), "done", len(done.Writes))
	if done.Err != nil {
		return reconcile.Result{}, done.Err
	}
	r.failing.forget(workload)
	if r.noteRefusal(workload, rollout, done) {
		return reconcile.Result{RequeueAfter: soon}, nil
	}
	return reconcile.Result{RequeueAfter: lookAfter(plan, done.Outdated)}, nil
}

// lookAfter returns when to look again even if nothing is seen to change; 0 is never.
func lookAfter(plan steps.Plan, outdated bool) time.Duration {
	if outdated && (plan.After == 0 || plan.After > lookAgain) {
		return lookAgain
	}
	return plan.After
}
