package controller

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stayput/stayput/controller/write"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/internal/observe"
)

// dryRunTimeout bounds a dry run, so that the reconcile has time for the rest, and the worker for other workloads.
const dryRunTimeout = 5 * time.Second

// planWithDryRun returns a plan. If the plan needs a dry run, planWithDryRun makes it and plans again with the result.
// A result is used for one update only, and no longer than engine.Memory says. Policies may have changed since.
func (r *Reconciler) planWithDryRun(ctx context.Context, workload types.NamespacedName, rollout engine.Rollout) steps.Plan {
	remembered, seen := r.memories.recall(workload), rollout.Snapshot()
	seen.DryRun, seen.OldDryRun = remembered.NewPods(seen.Settings.Partition, time.Now()), remembered.RefusedOld.Result
	plan := rollout.Plan()
	switch {
	case plan.DryRun == nil:
	case plan.DryRun.Back:
		seen.OldDryRun = r.askOldDryRun(ctx, workload, *plan.DryRun)
		plan = rollout.Plan()
	default:
		seen.DryRun = r.askDryRun(ctx, workload, *plan.DryRun)
		plan = rollout.Plan()
	}
	if plan.DryRun != nil {
		plan.After = inplace.LookAgain
	}
	return plan
}

// askDryRun makes a dry run of the update revision. If the API server has not answered for too long, it gives up, and
// returns that as a refusal.
func (r *Reconciler) askDryRun(ctx context.Context, workload types.NamespacedName, wanted steps.DryRun) dryrun.Result {
	known := r.memories.recall(workload).DryRun.Since(wanted.UpdateRevision, time.Now())
	var err error
	known.Result, err = r.ask(ctx, workload.Namespace, wanted)
	if known.UpdateRevision == "" && known.Old(time.Now()) {
		known.Result = dryrun.Result{
			UpdateRevision: wanted.UpdateRevision, Refused: fmt.Sprintf("the API server has not answered for %s: %v", inplace.LeaderPatience, err)}
	}
	if known.UpdateRevision == "" {
		log.FromContext(ctx).Error(err, "The dry run of a new pod has no answer yet")
	}
	r.memories.recall(workload).DryRun = known
	return known.Result
}

// askOldDryRun makes a dry run of a revision to which pods go back. Nothing but these pods waits for the result.
func (r *Reconciler) askOldDryRun(ctx context.Context, workload types.NamespacedName, wanted steps.DryRun) dryrun.Result {
	own, err := r.ask(ctx, workload.Namespace, wanted)
	if own.UpdateRevision == "" || own.Refused != "" {
		log.FromContext(ctx).Error(err, "Pods cannot return to their old revision yet")
	}
	if own.Refused != "" {
		r.memories.recall(workload).RefusedOld = engine.Asked{Result: own, At: time.Now()}
	}
	return own
}

// ask returns what an update has to know of new pods. If a part of the answer is missing, the UpdateRevision of the
// result is empty.
func (r *Reconciler) ask(ctx context.Context, namespace string, wanted steps.DryRun) (dryrun.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, dryRunTimeout)
	defer cancel()
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

// dryRun creates a pod without storing it, and returns the pod as the API server would store it.
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

// answer returns what the response says about new pods of the revision. It returns the zero value if another attempt
// may get another response.
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

// notAboutPod matches refusals that say nothing about running pods: that Stayput may not create pods, and refusals of
// quotas (checkRequest in k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go), which come after all
// policies. It only looks at how a message begins, because only that comes from the API server itself. A policy may
// quote the pod in what follows.
var notAboutPod = regexp.MustCompile(
	`^pods( "[^"]*")? is forbidden: (exceeded quota: |insufficient quota to consume: |status unknown for quota: |User "[^"]*" cannot create resource )`)

// noDryRun matches the refusal of a pod because a webhook has side effects. The API server does not call such a webhook
// in a dry run, so another dry run does not help: NewDryRunUnsupportedErr in
// k8s.io/apiserver/pkg/admission/plugin/webhook/errors. What a webhook itself says comes after "denied the request".
var noDryRun = regexp.MustCompile(`^admission webhook "[^"]*" does not support dry run$`)

// saysNothing reports whether a refusal says nothing about the pod.
func saysNothing(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	message := status.Status().Message
	return apierrors.IsForbidden(err) && notAboutPod.MatchString(message) || apierrors.IsBadRequest(err) && noDryRun.MatchString(message)
}

// tryRequests makes the patches by which containers restart on request in dry runs. It returns the steps, with a refusal of the request in
// place of each patch that admission would refuse or change.
func (r *Reconciler) tryRequests(ctx context.Context, todo []steps.Step) []steps.Step {
	var tried []steps.Step
	for _, step := range todo {
		patch, is := step.(steps.PatchPod)
		var refused write.Refusal
		if is && patch.Asked != "" && errors.As(r.tryOne(ctx, patch), &refused) {
			step = patch.Instead(refused.Error())
		}
		tried = append(tried, step)
	}
	return tried
}

func (r *Reconciler) tryOne(ctx context.Context, patch steps.PatchPod) error {
	asking, cancel := context.WithTimeout(ctx, dryRunTimeout)
	defer cancel()
	return r.writer.Try(asking, patch)
}

// tryPatch makes the first patch of images of an update in a dry run. It returns why the update falls back if admission would change that
// patch. Without an answer the patch itself decides: admission refuses it, or lets it pass.
func (r *Reconciler) tryPatch(ctx context.Context, workload types.NamespacedName, plan steps.Plan) *inplace.Reason {
	remembered, revision := r.memories.recall(workload), plan.Decision.UpdateRevision
	at := slices.IndexFunc(plan.Steps, write.ChangesImages)
	if at < 0 || !plan.Decision.Held || revision == nil || remembered.Tried == revision.GetUID() {
		return nil
	}
	err := r.tryOne(ctx, plan.Steps[at].(steps.PatchPod))
	var refused write.Refusal
	switch {
	case errors.As(err, &refused):
		return new(refused.Reason())
	case err != nil:
		log.FromContext(ctx).V(1).Info("The dry run of a patch has no answer", "error", err.Error())
	default:
		remembered.Tried = revision.GetUID()
	}
	return nil
}
