package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/inplace"
)

// lookAgain bounds how long an outdated cache keeps a workload waiting. Normally the event it waits for comes first.
const lookAgain = 2 * time.Second

// soon is at once, by way of the queue.
const soon = time.Millisecond

// rollout is a workload of either kind with everything an update of it depends on: see deployment.go and daemonset.go.
type rollout interface {
	Verdict() inplace.Verdict
	Plan() inplace.Plan
	Release(why inplace.Reason) inplace.Plan
	Wake() []inplace.Step
	scene() scene
	// setEndpoints adds what Plan needs to know about pods whose gates are closed.
	setEndpoints(endpoints inplace.Endpoints)
	// setAhead adds what Plan needs to know about pods whose kubelets do not know yet that they are Ready.
	setAhead(ahead inplace.Ahead)
	// setBeats adds since when Plan has put something off.
	setBeats(beats inplace.Beats)
	// pulling is what is known of images on nodes, to be completed before Plan.
	pulling() *inplace.Pulling
	// rehearsal is what is known of new pods, for Plan.
	rehearsal() *inplace.Rehearsal
	// done tells whether every pod is where it belongs and available, by the native controller's own account.
	done() bool
	// overdue tells whether the native controller says that there has been no progress for too long.
	overdue() bool
	// fresh tells whether no pod has come to the target yet.
	fresh(plan inplace.Plan) bool
}

// scene is what there is to see of a rollout whatever its kind.
type scene struct {
	workload  client.Object
	revisions []client.Object
	pods      []*corev1.Pod
	pullers   []*corev1.Pod
	mode      inplace.Mode
	settings  inplace.Settings
	now       time.Time
}

// objects returns everything the rollout was read from that anybody here writes to.
func (s scene) objects() []client.Object {
	objects := append([]client.Object{s.workload}, s.revisions...)
	for _, pod := range slices.Concat(s.pods, s.pullers) {
		objects = append(objects, pod)
	}
	return objects
}

// marked tells whether some revision is part of an update under way.
func (s scene) marked() bool { return slices.ContainsFunc(s.revisions, inplace.Settling) }

// kind is what differs between kinds of workloads besides their rollouts.
type kind struct {
	// workload and revision name the kinds of the workload and of what holds its revisions.
	workload, revision string
	// workloads and revisions are empty lists of them.
	workloads, revisions func() client.ObjectList
	// finished tells whether the native controller is done with a workload.
	finished func(workload runtime.Object) bool
}

// source reads one workload with everything that belongs to it, nil if it is gone.
type source func(ctx context.Context, key types.NamespacedName) (rollout, error)

// Reconciler updates the workloads of one kind in place. It runs on the leader only.
type Reconciler struct {
	// cached reads the cache, live the API server itself, which need not say anything of nodes.
	cached, live source
	drains       *drains
	quotas       quotaReader
	// refusals are the targets for which the API server takes no pullers.
	refusals   notes[inplace.Refused]
	rehearsals notes[rehearsal]
	aheads     notes[inplace.Ahead]
	beats      notes[inplace.Beats]
	failing    failing
	writer     writer
	reporter   *reporter
}

// Reconcile takes the steps that are due for one workload.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	rollout, err := r.cached(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if rollout == nil {
		r.writer.memory.forget(request.NamespacedName)
		r.drains.forget(request.NamespacedName)
		r.refusals.forget(request.NamespacedName)
		r.failing.forget(request.NamespacedName)
		r.rehearsals.forget(request.NamespacedName)
		r.aheads.forget(request.NamespacedName)
		r.beats.forget(request.NamespacedName)
		r.reporter.gone(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	result, err := r.advance(ctx, request.NamespacedName, rollout)
	if err != nil && r.failing.tooLong(request.NamespacedName, time.Now()) && rollout.Verdict().Held {
		why := fmt.Sprintf("it has failed for %s: %v", failingPatience, err)
		return r.giveBack(ctx, request.NamespacedName, rollout, inplace.Reason{Code: inplace.CodeFailing, Message: why})
	}
	return result, err
}

// advance plans on what was read, unless that is older than what is known to be, and carries the plan out.
func (r *Reconciler) advance(ctx context.Context, workload types.NamespacedName, rollout rollout) (reconcile.Result, error) {
	if r.isStale(ctx, workload, rollout) {
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	}
	plan, err := r.plan(ctx, workload, rollout)
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(plan.Steps) > 0 && !r.writer.memory.knows(workload) {
		return r.catchUp(ctx, workload)
	}
	return r.execute(ctx, workload, rollout, plan)
}

// isStale tells whether the cache is behind what is known.
func (r *Reconciler) isStale(ctx context.Context, workload types.NamespacedName, rollout rollout) bool {
	late := r.writer.memory.lagging(workload, rollout.scene().objects())
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
	r.writer.memory.remember(workload, current.scene().objects()...)
	return reconcile.Result{RequeueAfter: soon}, nil
}

// execute carries the plan out and reports what was done. If a step of an update is refused, the update is given back. Where
// there is nothing to give back, a refusal is an error like others.
func (r *Reconciler) execute(ctx context.Context, workload types.NamespacedName, rollout rollout, plan inplace.Plan) (reconcile.Result, error) {
	if !plan.Verdict.Held {
		return r.finish(ctx, workload, rollout, plan, r.writer.carryOut(ctx, workload, plan.Steps))
	}
	if overtaken, err := r.overtaken(ctx, rollout, plan); err != nil || overtaken {
		return reconcile.Result{RequeueAfter: lookAgain}, err
	}
	steps, confirmed := r.drains.confirm(ctx, workload, rollout.scene(), plan.Steps)
	done := r.writer.carryOut(ctx, workload, steps)
	done.outdated = done.outdated || !confirmed
	var refused refusal
	if !errors.As(done.err, &refused) {
		return r.finish(ctx, workload, rollout, plan, done)
	}
	r.reporter.report(rollout, plan, done.writes)
	return r.giveBack(ctx, workload, rollout, refused.reason())
}

// giveBack gives the update back to the native controller.
func (r *Reconciler) giveBack(ctx context.Context, workload types.NamespacedName, rollout rollout, why inplace.Reason) (reconcile.Result, error) {
	release := rollout.Release(why)
	return r.finish(ctx, workload, rollout, release, r.writer.carryOut(ctx, workload, release.Steps))
}

// overtaken tells whether the workload was edited since it was read, or is no longer ours, if the plan takes pods out of service: the native
// controller, which may be at work already, counts on them.
func (r *Reconciler) overtaken(ctx context.Context, rollout rollout, plan inplace.Plan) (bool, error) {
	if !slices.ContainsFunc(plan.Steps, inplace.Closes) {
		return false, nil
	}
	planned := rollout.scene().workload
	current, err := r.writer.current(ctx, planned)
	if err != nil {
		return true, client.IgnoreNotFound(err)
	}
	namespace, err := r.writer.current(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: planned.GetNamespace()}})
	if err != nil {
		return true, client.IgnoreNotFound(err)
	}
	mode := inplace.ModeOf(namespace.GetLabels(), current.GetLabels())
	return current.GetUID() != planned.GetUID() || current.GetGeneration() != planned.GetGeneration() || mode != rollout.scene().mode, nil
}

// finish reports what was done and says when to look again.
func (r *Reconciler) finish(
	ctx context.Context, workload types.NamespacedName, rollout rollout, plan inplace.Plan, done outcome,
) (reconcile.Result, error) {
	r.reporter.report(rollout, plan, done.writes)
	log.FromContext(ctx).V(1).Info("Reconciled", "phase", plan.Phase, "message", plan.Message, "steps", len(plan.Steps), "done", len(done.writes))
	if done.err != nil {
		return reconcile.Result{}, done.err
	}
	r.failing.forget(workload)
	if r.noteRefusal(workload, rollout, done) {
		return reconcile.Result{RequeueAfter: soon}, nil
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
