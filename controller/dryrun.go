package controller

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/stayput/stayput/controller/write"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stayput/stayput/controller/kinds"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/observe"
)

const (
	// askAgain is how long after a rehearsal without an answer there is another.
	askAgain = 5 * time.Second
	// unanswered is how long there may be none. Natively the pods would not be created meanwhile, either; but for a webhook that fails in
	// rehearsals only nobody must be held.
	unanswered = time.Minute
	// dryRunTimeout leaves the reconcile time for what else it does, and other workloads its worker.
	dryRunTimeout = 5 * time.Second
)

// asked is what is known of new pods for the update of a workload to that target, and since when it has been asked.
type asked struct {
	dryrun.Result
	updateRevision types.UID
	asked          time.Time
}

// planWithDryRun asks for a plan, and where that needs a rehearsal, for one that knows what came of it. What is known is of one update: before
// the next one to the same target policies may have changed.
func (r *Reconciler) planWithDryRun(ctx context.Context, workload types.NamespacedName, rollout kinds.Rollout) steps.Plan {
	needs := rollout.Needs()
	*needs.DryRun, *needs.OldDryRun = r.dryRuns.of(workload).Result, r.oldRefused(workload)
	plan := rollout.Plan()
	switch {
	case plan.DryRun == nil:
	case plan.DryRun.Back:
		*needs.OldDryRun = r.askOldDryRun(ctx, workload, *plan.DryRun)
		plan = rollout.Plan()
	default:
		*needs.DryRun = r.askDryRun(ctx, workload, *plan.DryRun)
		plan = rollout.Plan()
	}
	if plan.DryRun != nil {
		plan.After = askAgain
	}
	if !plan.Decision.Held {
		r.dryRuns.forget(workload)
	}
	return plan
}

// askDryRun asks the API server, and gives up where it has not answered for too long.
func (r *Reconciler) askDryRun(ctx context.Context, workload types.NamespacedName, wanted steps.DryRun) dryrun.Result {
	known := r.dryRuns.of(workload)
	if known.updateRevision != wanted.UpdateRevision {
		known = asked{updateRevision: wanted.UpdateRevision, asked: time.Now()}
	}
	asking, cancel := context.WithTimeout(ctx, dryRunTimeout)
	defer cancel()
	var err error
	known.Result, err = r.ask(asking, workload.Namespace, wanted)
	if known.UpdateRevision == "" && time.Since(known.asked) > unanswered {
		known.Result = dryrun.Result{UpdateRevision: wanted.UpdateRevision, Refused: fmt.Sprintf("the API server has not answered for %s: %v", unanswered, err)}
	}
	if known.UpdateRevision == "" {
		log.FromContext(ctx).Error(err, "What admission makes of a new pod cannot be asked yet")
	}
	r.dryRuns.note(workload, known)
	return known.Result
}

// askOldDryRun asks the API server about a revision to which pods go back. Nothing waits for the answer but they.
func (r *Reconciler) askOldDryRun(ctx context.Context, workload types.NamespacedName, wanted steps.DryRun) dryrun.Result {
	asking, cancel := context.WithTimeout(ctx, dryRunTimeout)
	defer cancel()
	own, err := r.ask(asking, workload.Namespace, wanted)
	if own.UpdateRevision == "" || own.Refused != "" {
		log.FromContext(ctx).Error(err, "Pods cannot go back yet to what their revision says")
	}
	if own.Refused != "" {
		r.refusedOld.note(workload, asked{Result: own, asked: time.Now()})
	}
	return own
}

// oldRefused is what rehearseOwn has found out lately, if that was a refusal.
func (r *Reconciler) oldRefused(workload types.NamespacedName) dryrun.Result {
	known := r.refusedOld.of(workload)
	if time.Since(known.asked) > unanswered {
		r.refusedOld.forget(workload)
		return dryrun.Result{}
	}
	return known.Result
}

// ask has what an update has to know answered; there is no answer, or all of it.
func (r *Reconciler) ask(ctx context.Context, namespace string, wanted steps.DryRun) (dryrun.Result, error) {
	claim, err := observe.ClaimForOneNode(ctx, r.writer.Live, namespace, wanted.Claims)
	if err != nil {
		return dryrun.Result{}, err
	}
	pod, err := r.dryRun(ctx, wanted)
	found := answer(wanted.UpdateRevision, pod, err)
	found.Claim = claim
	if found.Pod != nil {
		found.Pod, found.Refused = observe.Compared(found.Pod)
	}
	return found, err
}

// dryRun has a pod created and not stored, and returns it as it would be.
func (r *Reconciler) dryRun(ctx context.Context, wanted steps.DryRun) (*corev1.Pod, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(wanted.Pod); err != nil {
		return nil, fmt.Errorf("decoding a pod: %w", err)
	}
	if err := r.writer.Client.Create(ctx, object, client.DryRunAll, write.FieldOwner); err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	return pod, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, pod)
}

// answer is what the response says about new pods of the target; none if it may be another one soon.
func answer(updateRevision types.UID, pod *corev1.Pod, err error) dryrun.Result {
	switch {
	case err == nil:
		return dryrun.Result{UpdateRevision: updateRevision, Pod: pod}
	case saysNothing(err):
		return dryrun.Result{UpdateRevision: updateRevision, Unknown: err.Error()}
	case write.IsRefused(err):
		return dryrun.Result{UpdateRevision: updateRevision, Refused: err.Error()}
	}
	return dryrun.Result{}
}

// notTheirs are refusals that say nothing about running pods: those of quotas (checkRequest in
// k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go), which come after all policies; and that we may not create pods.
// Only how a message begins is the API server's own word: a policy's may quote the pod behind that.
var notTheirs = regexp.MustCompile(
	`^pods( "[^"]*")? is forbidden: (exceeded quota: |insufficient quota to consume: |status unknown for quota: |User "[^"]*" cannot create resource )`)

// noDryRun is that a webhook has side effects, so that it is not asked in a dry run, and never will be: NewDryRunUnsupportedErr in
// k8s.io/apiserver/pkg/admission/plugin/webhook/errors. What a webhook itself says comes behind "denied the request".
var noDryRun = regexp.MustCompile(`^admission webhook "[^"]*" does not support dry run$`)

// saysNothing reports whether a refusal is not about the pod.
func saysNothing(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	message := status.Status().Message
	return apierrors.IsForbidden(err) && notTheirs.MatchString(message) || apierrors.IsBadRequest(err) && noDryRun.MatchString(message)
}
