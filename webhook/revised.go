package webhook

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/controllerrevisions"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/internal/observe"
)

func (s Sources) decideRevised(
	ctx context.Context, k observe.Kind, req admission.Request, before *workload,
) (editDecision, error) {
	edited := k.Workload.Object()
	if err := decodeInto(edited, req.Object); err != nil {
		return editDecision{}, err
	}
	rollout, err := k.RolloutOfEdited(ctx, s.Live, edited, key(req))
	if rollout == nil || err != nil || !rollout.Seen.Mode.Manages() {
		return editDecision{}, err
	}
	s.addBudgets(ctx, req, &rollout.Seen)
	return editDecisionOf(rollout.Preview(before.Spec.Template)), nil
}

// refuseControlled refuses the deletion of a pod that is updated in place with a Conflict, after which the native controller tries again. A
// pod without a controller was orphaned on purpose after the deletion was decided. Where the controller takes a pod as gone after NotFound,
// it looks again only after an event. Such an event comes, even if all managers die, only for a pod that is out of service: its kubelet
// puts it back.
func (h Handlers) refuseControlled(ctx context.Context, k observe.Kind, pod *corev1.Pod) (refusal, error) {
	if metav1.GetControllerOfNoCopy(pod) != nil {
		held, err := h.either(func(reader observe.Reader) (bool, error) { return h.holdsDeletion(ctx, k, reader, pod) })
		if !held || err != nil {
			return nil, err
		}
	}
	if k.GoneIfNotFound && readiness.Out(pod) {
		return notFound, nil
	}
	return conflict, nil
}

// holdsDeletion reports whether the deletion of the pod is held by what the reader reads.
func (h Handlers) holdsDeletion(ctx context.Context, k observe.Kind, reader observe.Reader, pod *corev1.Pod) (bool, error) {
	rollout, err := k.Deletion(ctx, reader, pod, h.Cached)
	if rollout == nil || err != nil {
		return false, err
	}
	h.holdsSince(rollout)
	stay, why := rollout.HoldsDeletion(pod)
	h.Log.V(1).Info("Deletion by the "+k.Workload.Name+" controller",
		"namespace", pod.Namespace, "pod", line(pod.Name), "held", stay, "reason", why.Message)
	return stay, nil
}

// keepsRevision reports whether a ControllerRevision that the native controller deletes is to stay.
func (h Handlers) keepsRevision(
	ctx context.Context, k observe.Kind, reader observe.Reader, revision *apps.ControllerRevision,
) (bool, error) {
	rollout, err := k.RolloutOfControlled(ctx, reader, revision)
	if rollout == nil || err != nil {
		return false, err
	}
	h.holdsSince(rollout)
	keep, why := rollout.HoldsCleanup(revision)
	h.Log.V(1).Info("Deletion by the "+k.Workload.Name+" controller",
		"namespace", revision.Namespace, "revision", line(revision.Name), "held", keep, "reason", why.Message)
	return keep, nil
}

// holdsSince notes in the rollout since when this replica has held writes of the update.
func (h Handlers) holdsSince(rollout *controllerrevisions.Rollout) {
	workload := rollout.Kind.Workload()
	rollout.HeldSince = h.holdStarts.since(
		workload.Object, workload.Template, steps.RevisionOf(rollout.UpdateRevision()), rollout.Seen.Now)
}

// sameState returns a function that reports whether the pod stays, and the state of its workload is the same as at the first call. As long
// as it is, the native controller deletes the same pods in vain.
func (h Handlers) sameState(k observe.Kind, pod *corev1.Pod) func(context.Context) bool {
	before, state := "", controllerrevisions.Rollout.Progress
	if k.GoneIfNotFound {
		state = controllerrevisions.Rollout.OutOfService
	}
	return func(ctx context.Context) bool {
		if before == "" {
			if stays, err := h.holdsDeletion(ctx, k, h.Cached, pod); !stays || err != nil {
				return false
			}
		}
		rollout, err := k.RolloutOfControlled(ctx, h.Cached, pod)
		if rollout == nil || err != nil {
			return false
		}
		now := state(*rollout)
		if before == "" {
			before = now
		}
		return now == before
	}
}
