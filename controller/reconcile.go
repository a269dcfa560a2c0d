package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stayput/stayput/controller/allowance"
	"github.com/stayput/stayput/controller/drain"
	"github.com/stayput/stayput/controller/report"
	"github.com/stayput/stayput/controller/write"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/internal/observe"
	"github.com/stayput/stayput/internal/tracing"
)

// Reconciler updates the workloads of one kind in place. It runs on the leader only.
type Reconciler struct {
	kind observe.Kind
	// cached reads the cache, live the API server itself. Rollouts that live returns need not have nodes.
	cached, live observe.Source
	drains       *drain.Drains
	broker       *allowance.Broker
	// woken are workloads whose pods wait no longer for others.
	woken chan event.GenericEvent
	// namespaces reads from the API server what a namespace says about its workloads.
	namespaces observe.Reader
	leadership observe.Leadership
	// hold reads the cache.
	hold     observe.Hold
	memories memories
	writer   write.Writer
	Reporter *report.Reporter
	tracer   *tracing.Tracer
}

// reconcile looks at one workload. If its minimum interval is not over, it requeues the workload to the end of
// the interval. No worker waits meanwhile, and one look then covers all events in between.
func (r *Reconciler) reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	remembered := r.memories.recall(request.NamespacedName)
	if left := remembered.LeftAlone(time.Now()); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	rollout, err := r.snapshot(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if rollout == nil {
		r.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	result, err := r.look(ctx, request.NamespacedName, rollout)
	if err == nil {
		remembered.Looked(len(rollout.Snapshot().Pods), time.Now())
	}
	return result, err
}

// forget drops what is known of a workload that is gone. A persisted fallback stays until newer ones push it out: no other workload gets
// the same UID.
func (r *Reconciler) forget(workload types.NamespacedName) {
	r.memories.forget(workload)
	r.Reporter.Gone(workload)
}

// look carries out the steps that are due. An update that has failed for too long falls back.
func (r *Reconciler) look(ctx context.Context, workload types.NamespacedName, rollout engine.Rollout) (reconcile.Result, error) {
	result, err := r.advance(ctx, workload, rollout)
	if err != nil && r.memories.recall(workload).Failed(time.Now()) && rollout.Decision().Held {
		why := fmt.Sprintf("it has failed for %s: %v", engine.FailingPatience, err)
		return r.fallBack(ctx, workload, rollout, inplace.Reason{Code: inplace.CodeFailing, Message: why})
	}
	return result, err
}

// advance makes a plan and carries it out, unless the cache is older than what is known.
func (r *Reconciler) advance(ctx context.Context, workload types.NamespacedName, rollout engine.Rollout) (reconcile.Result, error) {
	if r.isStale(ctx, workload, rollout) {
		return reconcile.Result{RequeueAfter: inplace.LookAgain}, nil
	}
	plan, err := r.plan(ctx, workload, rollout)
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(plan.Steps) > 0 && !r.memories.recall(workload).Versions.Known() {
		return r.catchUp(ctx, workload)
	}
	return r.execute(ctx, workload, rollout, plan)
}

// isStale reports whether the cache shows an older version of an object than is known to exist.
func (r *Reconciler) isStale(ctx context.Context, workload types.NamespacedName, rollout engine.Rollout) bool {
	late := r.memories.recall(workload).Versions.Lagging(engine.Objects(rollout))
	if late == nil {
		return false
	}
	log.FromContext(ctx).V(1).Info("Waiting for the cache", "object", late.GetName(), "resourceVersion", late.GetResourceVersion())
	return true
}

// catchUp remembers the live versions of a workload's objects before this process writes to them for the first time.
// The previous leader may have written what this process's cache does not show yet. If the workload still exists, it is
// requeued at once to be planned again.
func (r *Reconciler) catchUp(ctx context.Context, workload types.NamespacedName) (reconcile.Result, error) {
	current, err := r.live(ctx, workload)
	if err != nil {
		return reconcile.Result{}, err
	}
	if current == nil {
		return reconcile.Result{RequeueAfter: inplace.LookAgain}, nil
	}
	r.memories.recall(workload).Versions.Remember(engine.Objects(current)...)
	return reconcile.Result{RequeueAfter: atOnce}, nil
}

// execute carries the plan out and reports what was done. If the API server refuses a step of an update, the update
// falls back. If there is no update, a refusal is an error like any other. Where pods ask for restarts, the pods' turns are
// confirmed as in an update.
func (r *Reconciler) execute(
	ctx context.Context, workload types.NamespacedName, rollout engine.Rollout, plan steps.Plan,
) (reconcile.Result, error) {
	if !plan.Confirmed() {
		return r.finish(ctx, workload, rollout, plan, r.carryOut(ctx, workload, rollout, plan.Steps))
	}
	if err := r.hold.Registered(ctx); err != nil {
		return reconcile.Result{}, err
	}
	if overtaken, err := r.overtaken(ctx, rollout, plan); err != nil || overtaken {
		return reconcile.Result{RequeueAfter: inplace.LookAgain}, err
	}
	if reason := r.tryPatch(ctx, workload, plan); reason != nil {
		return r.fallBack(ctx, workload, rollout, *reason)
	}
	steps, confirmed := r.drains.Confirm(ctx, r.memories.recall(workload), rollout, r.tryRequests(ctx, plan.Steps))
	term, end, err := r.term(ctx, plan)
	if err != nil {
		return reconcile.Result{}, err
	}
	defer end()
	steps, settle, reserved := r.broker.Reserve(term, rollout, steps)
	done := r.carryOut(term, workload, rollout, steps)
	settle(done)
	plan.Overtaken = !reserved
	done.Outdated = done.Outdated || !confirmed || !reserved
	var refused write.Refusal
	if !plan.Decision.Held || !errors.As(done.Err, &refused) {
		return r.finish(ctx, workload, rollout, plan, done)
	}
	r.Reporter.Report(rollout, plan, done.Writes)
	return r.fallBack(ctx, workload, rollout, refused.Reason())
}

// fallBack leaves the update to the native controller for good, unless it waits while the user wants no pod to be replaced.
func (r *Reconciler) fallBack(
	ctx context.Context, workload types.NamespacedName, rollout engine.Rollout, why inplace.Reason,
) (reconcile.Result, error) {
	fallback := rollout.FallBack(why)
	done := r.carryOut(ctx, workload, rollout, fallback.Steps)
	if !fallback.Decision.Held {
		return r.finish(ctx, workload, rollout, fallback, done)
	}
	r.memories.recall(workload).Waits(fallback, time.Now())
	r.Reporter.Report(rollout, fallback, done.Writes)
	log.FromContext(ctx).Error(done.Err, "The update waits, as no pod is to be replaced", "reason", why.Message)
	return reconcile.Result{RequeueAfter: inplace.Sooner(retryLast, fallback.After)}, nil // the hold must be renewed meanwhile
}

// carryOut makes the steps, and remembers the versions that it has written. If the update falls back because of a step, the rollout has
// what was written before.
func (r *Reconciler) carryOut(
	ctx context.Context, workload types.NamespacedName, rollout engine.Rollout, todo []steps.Step,
) write.Outcome {
	done := r.writer.CarryOut(ctx, todo)
	remembered, pods := r.memories.recall(workload), map[types.UID]*corev1.Pod{}
	for _, made := range done.Writes {
		remembered.Versions.Remember(made.After)
		remembered.Made(made.Step, time.Now())
		if pod, is := made.After.(*corev1.Pod); is {
			pods[pod.UID] = pod
		}
	}
	rollout.Snapshot().Wrote(pods)
	return done
}

// overtaken reports whether the workload was edited since it was read, or whether Stayput no longer manages it. It asks
// the API server only if the plan takes pods out of service. In these cases the native controller may already be
// working, and counts on these pods.
func (r *Reconciler) overtaken(ctx context.Context, rollout engine.Rollout, plan steps.Plan) (bool, error) {
	if !slices.ContainsFunc(plan.Steps, steps.TakesOut) {
		return false, nil
	}
	planned := rollout.Workload()
	current, err := r.writer.Current(ctx, planned)
	if err != nil {
		return true, client.IgnoreNotFound(err)
	}
	mode, err := r.kind.Mode(ctx, r.namespaces, planned.GetNamespace(), current.GetLabels())
	if err != nil {
		return true, client.IgnoreNotFound(err)
	}
	// An edit of annotations does not change the generation.
	repartitioned := inplace.PartitionOf(current.GetAnnotations()) != inplace.PartitionOf(planned.GetAnnotations()) ||
		inplace.WindowOf(current.GetAnnotations()) != inplace.WindowOf(planned.GetAnnotations())
	return current.GetUID() != planned.GetUID() || current.GetGeneration() != planned.GetGeneration() ||
		mode != rollout.Snapshot().Mode || repartitioned, nil
}

// term returns a context for the writes of a plan. If the plan takes pods out of service, the context ends with the
// leader's Lease. Otherwise two leaders could each keep to maxUnavailable and together exceed it. Guards do not prevent
// that, because each leader takes other pods out.
func (r *Reconciler) term(ctx context.Context, plan steps.Plan) (term context.Context, end context.CancelFunc, err error) {
	if !slices.ContainsFunc(plan.Steps, steps.TakesOut) {
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

// finish reports what was done, and returns when to look again.
func (r *Reconciler) finish(
	ctx context.Context, workload types.NamespacedName, rollout engine.Rollout, plan steps.Plan, done write.Outcome,
) (reconcile.Result, error) {
	r.Reporter.Report(rollout, plan, done.Writes)
	log.FromContext(ctx).V(1).Info("Reconciled",
		"phase", plan.Phase, "message", plan.Message, "steps", len(plan.Steps), "done", len(done.Writes))
	if done.Err != nil {
		return reconcile.Result{}, done.Err
	}
	if !done.Late {
		r.memories.recall(workload).Succeeded()
	}
	if r.noteRefusal(workload, rollout, done) {
		return reconcile.Result{RequeueAfter: atOnce}, nil
	}
	return reconcile.Result{RequeueAfter: lookAfter(plan, done.Outdated)}, nil
}

// lookAfter returns after what time to look again if no event comes; 0 is never.
func lookAfter(plan steps.Plan, outdated bool) time.Duration {
	if outdated && (plan.After == 0 || plan.After > inplace.LookAgain) {
		return inplace.LookAgain
	}
	return plan.After
}
