package controller

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/inplace"
)

// lookAgain bounds how long an outdated cache keeps a Deployment waiting. Normally the event it waits for comes first.
const lookAgain = 2 * time.Second

// soon is at once, by way of the queue.
const soon = time.Millisecond

// rolloutReader reads a Deployment with its ReplicaSets and pods, nil if it is gone; see observe.Reader.
type rolloutReader interface {
	Rollout(ctx context.Context, key types.NamespacedName) (*inplace.Rollout, error)
}

// Reconciler updates Deployments in place. It runs on the leader only.
type Reconciler struct {
	// cached reads the cache, live the API server itself.
	cached, live rolloutReader
	writer       writer
	reporter     *reporter
}

// Reconcile takes the steps that are due for one Deployment.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	rollout, err := r.cached.Rollout(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if rollout == nil {
		r.writer.memory.forget(request.NamespacedName)
		r.reporter.gone(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	return r.advance(ctx, request.NamespacedName, rollout)
}

// advance plans on what was read, unless that is older than what is known to be, and carries the plan out.
func (r *Reconciler) advance(ctx context.Context, deployment types.NamespacedName, rollout *inplace.Rollout) (reconcile.Result, error) {
	if r.isStale(ctx, deployment, rollout) {
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	}
	plan := rollout.Plan()
	if len(plan.Steps) > 0 && !r.writer.memory.knows(deployment) {
		return r.catchUp(ctx, deployment)
	}
	return r.execute(ctx, deployment, rollout, plan)
}

// isStale tells whether the cache is behind what is known.
func (r *Reconciler) isStale(ctx context.Context, deployment types.NamespacedName, rollout *inplace.Rollout) bool {
	late := r.writer.memory.lagging(deployment, objectsOf(rollout))
	if late == nil {
		return false
	}
	log.FromContext(ctx).V(1).Info("Waiting for the cache", "object", late.GetName(), "resourceVersion", late.GetResourceVersion())
	return true
}

// objectsOf returns everything the rollout was read from.
func objectsOf(rollout *inplace.Rollout) []client.Object {
	objects := []client.Object{rollout.Deployment}
	for _, replicaSet := range rollout.ReplicaSets {
		objects = append(objects, replicaSet)
	}
	for _, pod := range rollout.Pods {
		objects = append(objects, pod)
	}
	return objects
}

// catchUp remembers the live versions of a Deployment's objects, before this process writes to it for the first time: the
// leader before us may have written what our cache does not show yet. Then it is planned anew, if it still exists.
func (r *Reconciler) catchUp(ctx context.Context, deployment types.NamespacedName) (reconcile.Result, error) {
	current, err := r.live.Rollout(ctx, deployment)
	if err != nil {
		return reconcile.Result{}, err
	}
	if current == nil {
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	}
	r.writer.memory.remember(deployment, objectsOf(current)...)
	return reconcile.Result{RequeueAfter: soon}, nil
}

// execute carries the plan out and reports what was done. If a step of an update is refused, the update is given back. Where
// there is nothing to give back, a refusal is an error like others, and does not keep the other steps waiting.
func (r *Reconciler) execute(ctx context.Context, deployment types.NamespacedName, rollout *inplace.Rollout, plan inplace.Plan) (reconcile.Result, error) {
	if !plan.Verdict.Held {
		return r.finish(ctx, rollout, plan, r.writer.carryOutAll(ctx, deployment, plan.Steps))
	}
	done := r.writer.carryOut(ctx, deployment, plan.Steps)
	var refused refusal
	if !errors.As(done.err, &refused) {
		return r.finish(ctx, rollout, plan, done)
	}
	r.reporter.report(rollout, plan, done.writes)
	release := rollout.Release(refused.reason())
	return r.finish(ctx, rollout, release, r.writer.carryOutAll(ctx, deployment, release.Steps))
}

// finish reports what was done and says when to look again.
func (r *Reconciler) finish(ctx context.Context, rollout *inplace.Rollout, plan inplace.Plan, done outcome) (reconcile.Result, error) {
	r.reporter.report(rollout, plan, done.writes)
	log.FromContext(ctx).V(1).Info("Reconciled", "phase", plan.Phase, "message", plan.Message, "steps", len(plan.Steps), "done", len(done.writes))
	if done.err != nil {
		return reconcile.Result{}, done.err
	}
	return reconcile.Result{RequeueAfter: lookAfter(plan, done.outdated)}, nil
}

// lookAfter returns when to look again even if nothing is seen to change; 0 is never.
func lookAfter(plan inplace.Plan, outdated bool) time.Duration {
	if outdated && (plan.After == 0 || plan.After > lookAgain) {
		return lookAgain
	}
	return plan.After
}
