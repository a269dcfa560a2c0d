package webhook

import (
	"context"
	"errors"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/internal/observe"
)

// mutateReplicaSet makes the Deployment controller create a new ReplicaSet without replicas when live pods can move to it. The controller
// carries on: the ReplicaSet has its native name, number and annotations. Marks that a label of the template would put on it are removed.
func (s Sources) mutateReplicaSet(ctx context.Context, req admission.Request) (answer, error) {
	rs, err := decode[apps.ReplicaSet](req.Object, "spec")
	if err != nil {
		return allow(), err
	}
	rs.Namespace = req.Namespace
	operations := revisions.WithoutMarks(rs)
	empty, err := s.podsMoveTo(ctx, rs)
	if err != nil || !empty {
		return patch(uncounted, operations), err
	}
	return patch(createdEmpty, append(operations, revisions.WithoutReplicas(rs)...)), nil
}

// podsMoveTo reports whether the pods of the new ReplicaSet's Deployment can move to it.
func (s Sources) podsMoveTo(ctx context.Context, rs *apps.ReplicaSet) (bool, error) {
	return s.either(func(reader observe.Reader) (bool, error) {
		rollout, err := reader.WithoutPods().RolloutOfReplicaSet(ctx, rs)
		return rollout != nil && receives(*rollout, rs), err
	})
}

// receives reports whether the pods of the rollout can move to the new ReplicaSet. It decides for the template from which the controller
// made the ReplicaSet. That need not be the Deployment's latest template, nor the one that the reader knows.
func receives(rollout deployments.Rollout, rs *apps.ReplicaSet) bool {
	deployment := *rollout.Deployment
	deployment.Spec.Template = rs.Spec.Template
	rollout.Deployment = &deployment
	return rollout.Decision().Held || rollout.Deleting()
}

// scaled is a ReplicaSet, or its Scale.
type scaled struct {
	Spec struct {
		Replicas int32 `json:"replicas"`
	} `json:"spec"`
}

// validateReplicaSet holds what the Deployment controller does to a Deployment's ReplicaSets while only Stayput scales them.
func (h Handlers) validateReplicaSet(ctx context.Context, req admission.Request) (answer, error) {
	if req.Operation == admissionv1.Delete {
		return h.validateCleanup(ctx, req)
	}
	return h.validateScaling(ctx, req)
}

// validateScaling holds changes of the replicas.
func (h Handlers) validateScaling(ctx context.Context, req admission.Request) (answer, error) {
	if changes, err := scales(req); err != nil || !changes {
		return allow(), err
	}
	var moving *deployments.Rollout
	stays, err := h.either(func(reader observe.Reader) (moves bool, err error) {
		moving, err = h.moving(ctx, reader.WithoutPods(), key(req))
		return moving != nil, err
	})
	if err != nil || !stays {
		return allow(), err
	}
	return deny(held, h.scalingRefused(ctx, req, moving)), nil
}

// scalingRefused returns a Conflict, which the Deployment controller takes without an event. The controller retries later, unless a retry
// would be superfluous, or too often.
func (h Handlers) scalingRefused(ctx context.Context, req admission.Request, moving *deployments.Rollout) *apierrors.StatusError {
	why := errors.New("stayput moves the pods of this Deployment in place; its replicas are held meanwhile")
	refused := apierrors.NewConflict(appsv1.Resource("replicasets"), req.Name, why)
	if !h.retried(ctx, req, moving) {
		refused.ErrStatus.Details.Causes = []metav1.StatusCause{
			{Type: corev1.NamespaceTerminatingCause, Message: "to be tried again with the next event"},
		}
	}
	return refused
}

// retried reports whether the Deployment controller is to retry a refused scaling by itself: because no event is to come that makes it look
// again, or because what ended the hold was one. An update that may wait for days gets few retries.
func (h Handlers) retried(ctx context.Context, req admission.Request, moving *deployments.Rollout) bool {
	if moving.BegunLately() {
		return !h.eventToCome(ctx, req, moving)
	}
	if h.retries.allow(moving.Deployment.UID, time.Now()) {
		return true
	}
	live, err := h.moving(ctx, h.Live.WithoutPods(), key(req))
	return err != nil || live == nil || live.BegunLately()
}

// eventToCome reports whether the API server says now that an event of one of the ReplicaSets is to come. The request has the one that is
// scaled, and the cache says which other one to ask about. To know of none costs one more try, so no others are read.
func (h Handlers) eventToCome(ctx context.Context, req admission.Request, moving *deployments.Rollout) bool {
	if rs, err := decode[apps.ReplicaSet](req.OldObject); err == nil && deployments.EventToCome(rs) {
		return true
	}
	other := slices.IndexFunc(moving.ReplicaSets, func(rs *apps.ReplicaSet) bool {
		return rs.Name != req.Name && deployments.EventToCome(rs)
	})
	if other < 0 {
		return false
	}
	rs, err := observe.Find[apps.ReplicaSet](ctx, h.Live, client.ObjectKeyFromObject(moving.ReplicaSets[other]))
	return rs != nil && err == nil && deployments.EventToCome(rs)
}

// validateCleanup keeps revisionHistoryLimit from deleting a ReplicaSet to which a pod is just moving: the garbage collector would delete
// that pod with it. The Deployment controller decides on a cache in which the ReplicaSet may still have no pods. It takes NotFound as
// done (cleanupDeployment in pkg/controller/deployment/sync.go), and tries again with its next event.
func (h Handlers) validateCleanup(ctx context.Context, req admission.Request) (answer, error) {
	rs, err := decode[apps.ReplicaSet](req.OldObject)
	if err != nil {
		return allow(), err
	}
	rs.Namespace = req.Namespace
	stays, err := h.markHolds(ctx, h.Live, rs)
	refuse, err := refusal(notFound).ifHeld(stays, err)
	return deletion(req, refuse), err
}

func scales(req admission.Request) (bool, error) {
	now, err := decode[scaled](req.Object)
	if err != nil {
		return false, err
	}
	before, err := decode[scaled](req.OldObject)
	if err != nil {
		return false, err
	}
	return now.Spec.Replicas != before.Spec.Replicas, nil
}

// throttleScaling delays the answer to the Deployment controller while its scaling is held.
func (h Handlers) throttleScaling(ctx context.Context, req admission.Request) (answer, error) {
	h.throttled[deploymentController].wait(ctx, key(req), h.sameUpdate(key(req)))
	return allow(), nil
}
