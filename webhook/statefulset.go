package webhook

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/statefulsets"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/observe"
)

// statefulSetController is the user of the native controller of StatefulSets.
const statefulSetController = "system:serviceaccount:kube-system:statefulset-controller"

// statefulSetKind: the StatefulSet controller creates and deletes the pods.
var statefulSetKind = kind{
	Kind:       observe.StatefulSets,
	podsBy:     statefulSetController,
	decideEdit: Handlers.decideStatefulSet,
	ungated:    Handlers.neverDrains,
	stays:      Handlers.holdsMember,
	// After NotFound the controller would count the pod as deleted in its status, would record SuccessfulDelete, and would not try again.
	// After any other error it writes the status as it is, records FailedDelete with the message, and tries again later (performUpdate in
	// pkg/controller/statefulset/stateful_set_control.go, recordPodEvent in stateful_pod_control.go).
	refuse:        conflict,
	keepsRevision: Handlers.keepsMemberRevision,
	futile:        Handlers.sameMembers,
	throttle:      throttle,
}

// neverDrains reports whether new pods of the StatefulSet get no gate: see inplace/statefulsets. Where only managers open gates, a gate
// that stays closed when all of them have ended would make the controller wait for an updated pod for ever.
func (h Handlers) neverDrains(workload client.Object) bool {
	statefulSet, is := workload.(*apps.StatefulSet)
	return is && (statefulSet.Ordered() || !h.APIServerOpensGates)
}

func (h Handlers) decideStatefulSet(ctx context.Context, req admission.Request, before *workload) (editDecision, error) {
	statefulSet, err := decode[apps.StatefulSet](req.Object)
	if err != nil {
		return editDecision{}, err
	}
	stored, err := h.Live.StatefulSet(ctx, key(req))
	if stored == nil || err != nil {
		return editDecision{}, err
	}
	statefulSet.Namespace, statefulSet.UID, statefulSet.Spec.Selector = stored.Namespace, stored.UID, stored.Spec.Selector
	rollout, err := h.Live.StatefulRolloutOf(ctx, statefulSet)
	if err != nil || !rollout.Seen.Mode.Manages() {
		return editDecision{}, err
	}
	return editDecisionOf(rollout.DecideEdit(before.Spec.Template)), nil
}

// holdsMember reports whether a pod of a StatefulSet stays because it is updated in place. It reads live: a deletion that is allowed by
// mistake loses a pod, and one that is refused by mistake keeps the controller from scaling down. A pod without a controller was orphaned
// on purpose after the deletion was decided.
func (h Handlers) holdsMember(ctx context.Context, pod *corev1.Pod) (bool, error) {
	if metav1.GetControllerOfNoCopy(pod) == nil {
		return true, nil
	}
	rollout, err := h.Live.MemberDeletion(ctx, pod, h.Cached)
	if rollout == nil || err != nil {
		return false, err
	}
	h.holdsSince(rollout)
	stay, why := rollout.HoldsDeletion(pod)
	h.Log.V(1).Info("Deletion by the StatefulSet controller", "namespace", pod.Namespace, "pod", pod.Name, "held", stay, "reason", why.Message)
	return stay, nil
}

// holdsSince notes in the rollout since when this replica has held writes of the update.
func (h Handlers) holdsSince(rollout *statefulsets.Rollout) {
	rollout.HeldSince = h.heldSince(
		rollout.StatefulSet, rollout.StatefulSet.Spec.Template, steps.RevisionOf(rollout.UpdateRevision()), rollout.Seen.Now)
}

func (h Handlers) keepsMemberRevision(ctx context.Context, reader observe.Reader, revision *apps.ControllerRevision) (bool, error) {
	rollout, err := reader.StatefulRolloutOfControlled(ctx, revision)
	if rollout == nil || err != nil {
		return false, err
	}
	h.holdsSince(rollout)
	keep, why := rollout.HoldsCleanup(revision)
	h.Log.V(1).Info("Deletion by the StatefulSet controller",
		"namespace", revision.Namespace, "revision", revision.Name, "held", keep, "reason", why.Message)
	return keep, nil
}

// sameMembers returns a function that reports whether the pod stays, and neither the StatefulSet nor its pods have changed since the first
// call, as far as the update is concerned.
func (h Handlers) sameMembers(pod *corev1.Pod) func(context.Context) bool {
	before := ""
	return func(ctx context.Context) bool {
		rollout, err := h.Cached.StatefulRolloutOfControlled(ctx, pod)
		if rollout == nil || err != nil {
			return false
		}
		if before == "" {
			h.holdsSince(rollout)
			if stays, _ := rollout.HoldsDeletion(pod); !stays {
				return false
			}
			before = rollout.Progress()
		}
		return rollout.Progress() == before
	}
}
