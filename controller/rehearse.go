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
	"github.com/stayput/stayput/inplace/rehearsal"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/observe"
)

const (
	// askAgain is how long after a rehearsal without an answer there is another.
	askAgain = 5 * time.Second
	// unanswered is how long there may be none. Natively the pods would not be created meanwhile, either; but for a webhook that fails in
	// rehearsals only nobody must be held.
	unanswered = time.Minute
	// rehearsalTimeout leaves the reconcile time for what else it does, and other workloads its worker.
	rehearsalTimeout = 5 * time.Second
)

// asked is what is known of new pods for the update of a workload to that target, and since when it has been asked.
type asked struct {
	rehearsal.Rehearsal
	target types.UID
	asked  time.Time
}

// rehearsed asks for a plan, and where that needs a rehearsal, for one that knows what came of it. What is known is of one update: before
// the next one to the same target policies may have changed.
func (r *Reconciler) rehearsed(ctx context.Context, workload types.NamespacedName, rollout kinds.Rollout) steps.Plan {
	asks := rollout.Asks()
	*asks.Rehearsal, *asks.Own = r.rehearsals.of(workload).Rehearsal, r.ownRefused(workload)
	plan := rollout.Plan()
	switch {
	case plan.Rehearse == nil:
	case plan.Rehearse.Back:
		*asks.Own = r.rehearseOwn(ctx, workload, *plan.Rehearse)
		plan = rollout.Plan()
	default:
		*asks.Rehearsal = r.rehearse(ctx, workload, *plan.Rehearse)
		plan = rollout.Plan()
	}
	if plan.Rehearse != nil {
		plan.After = askAgain
	}
	if !plan.Verdict.Held {
		r.rehearsals.forget(workload)
	}
	return plan
}

// rehearse asks the API server, and gives up where it has not answered for too long.
func (r *Reconciler) rehearse(ctx context.Context, workload types.NamespacedName, wanted steps.Rehearse) rehearsal.Rehearsal {
	known := r.rehearsals.of(workload)
	if known.target != wanted.Target {
		known = asked{target: wanted.Target, asked: time.Now()}
	}
	asking, cancel := context.WithTimeout(ctx, rehearsalTimeout)
	defer cancel()
	var err error
	known.Rehearsal, err = r.ask(asking, workload.Namespace, wanted)
	if known.Target == "" && time.Since(known.asked) > unanswered {
		known.Rehearsal = rehearsal.Rehearsal{Target: wanted.Target, Refused: fmt.Sprintf("the API server has not answered for %s: %v", unanswered, err)}
	}
	if known.Target == "" {
		log.FromContext(ctx).Error(err, "What admission makes of a new pod cannot be asked yet")
	}
	r.rehearsals.note(workload, known)
	return known.Rehearsal
}

// rehearseOwn asks the API server about a revision to which pods go back. Nothing waits for the answer but they.
func (r *Reconciler) rehearseOwn(ctx context.Context, workload types.NamespacedName, wanted steps.Rehearse) rehearsal.Rehearsal {
	asking, cancel := context.WithTimeout(ctx, rehearsalTimeout)
	defer cancel()
	own, err := r.ask(asking, workload.Namespace, wanted)
	if own.Target == "" || own.Refused != "" {
		log.FromContext(ctx).Error(err, "Pods cannot go back yet to what their revision says")
	}
	if own.Refused != "" {
		r.refusedOwn.note(workload, asked{Rehearsal: own, asked: time.Now()})
	}
	return own
}

// ownRefused is what rehearseOwn has found out lately, if that was a refusal.
func (r *Reconciler) ownRefused(workload types.NamespacedName) rehearsal.Rehearsal {
	known := r.refusedOwn.of(workload)
	if time.Since(known.asked) > unanswered {
		r.refusedOwn.forget(workload)
		return rehearsal.Rehearsal{}
	}
	return known.Rehearsal
}

// ask has what an update has to know answered; there is no answer, or all of it.
func (r *Reconciler) ask(ctx context.Context, namespace string, wanted steps.Rehearse) (rehearsal.Rehearsal, error) {
	claim, err := observe.ClaimForOneNode(ctx, r.writer.Live, namespace, wanted.Claims)
	if err != nil {
		return rehearsal.Rehearsal{}, err
	}
	pod, err := r.dryRun(ctx, wanted)
	found := answer(wanted.Target, pod, err)
	found.Claim = claim
	if found.Pod != nil {
		found.Pod, found.Refused = observe.Compared(found.Pod)
	}
	return found, err
}

// dryRun has a pod created and not stored, and returns it as it would be.
func (r *Reconciler) dryRun(ctx context.Context, wanted steps.Rehearse) (*corev1.Pod, error) {
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
func answer(target types.UID, pod *corev1.Pod, err error) rehearsal.Rehearsal {
	switch {
	case err == nil:
		return rehearsal.Rehearsal{Target: target, Pod: pod}
	case saysNothing(err):
		return rehearsal.Rehearsal{Target: target, Unknown: err.Error()}
	case write.IsRefused(err):
		return rehearsal.Rehearsal{Target: target, Refused: err.Error()}
	}
	return rehearsal.Rehearsal{}
}

// notTheirs are refusals that say nothing about running pods: those of quotas (checkRequest in
// k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go), which come after all policies; and that we may not create pods.
// Only how a message begins is the API server's own word: a policy's may quote the pod behind that.
var notTheirs = regexp.MustCompile(
	`^pods( "[^"]*")? is forbidden: (exceeded quota: |insufficient quota to consume: |status unknown for quota: |User "[^"]*" cannot create resource )`)

// noDryRun is that a webhook has side effects, so that it is not asked in a dry run, and never will be: NewDryRunUnsupportedErr in
// k8s.io/apiserver/pkg/admission/plugin/webhook/errors. What a webhook itself says comes behind "denied the request".
var noDryRun = regexp.MustCompile(`^admission webhook "[^"]*" does not support dry run$`)

// saysNothing tells whether a refusal is not about the pod.
func saysNothing(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	message := status.Status().Message
	return apierrors.IsForbidden(err) && notTheirs.MatchString(message) || apierrors.IsBadRequest(err) && noDryRun.MatchString(message)
}
