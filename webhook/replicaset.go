package webhook

import (
	"context"
	"errors"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/creation"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/observe"
)

// mutateReplicaSet lets a new revision be born empty when live pods can move to it. The Deployment controller carries on:
// the revision has its native name, number and annotations. Marks that a template label would put on it are taken off.
func (h Handlers) mutateReplicaSet(ctx context.Context, req admission.Request) (answer, error) {
	if !by(req, deploymentController, admissionv1.Create) {
		return allow(), nil
	}
	rs, err := decode[apps.ReplicaSet](req.Object, "spec")
	if err != nil {
		return allow(), err
	}
	rs.Namespace = req.Namespace
	operations := creation.Unmarked(rs)
	empty, err := h.held(ctx, func(ctx context.Context, reader observe.Reader) (bool, error) {
		return receives(ctx, reader, rs)
	})
	if err != nil || !empty {
		return patch(notOurs, operations), err
	}
	return patch(createdEmpty, append(operations, creation.WithoutReplicas(rs)...)), nil
}

// receives reports whether the pods of the new ReplicaSet's Deployment can move to it. The question is put for the template the
// controller made it from, which need not be the Deployment's latest one, nor the one that the reader knows.
func receives(ctx context.Context, reader observe.Reader, rs *apps.ReplicaSet) (bool, error) {
	rollout, err := reader.RolloutOfReplicaSet(ctx, rs)
	if rollout == nil || err != nil {
		return false, err
	}
	deployment := *rollout.Deployment
	deployment.Spec.Template = rs.Spec.Template
	rollout.Deployment = &deployment
	return rollout.Decision().Held || rollout.Deleting(), nil
}

// scaled is what a ReplicaSet and its Scale have in common.
type scaled struct {
	Spec struct {
		Replicas int32 `json:"replicas"`
	} `json:"spec"`
}

// validateReplicaSet holds what the Deployment controller does to a Deployment's ReplicaSets while Stayput is the only scaler.
func (h Handlers) validateReplicaSet(ctx context.Context, req admission.Request) (answer, error) {
	switch {
	case by(req, deploymentController, admissionv1.Update):
		return h.validateScaling(ctx, req)
	case by(req, deploymentController, admissionv1.Delete):
		return h.validateCleanup(ctx, req)
	}
	return allow(), nil
}

// validateScaling holds the replicas.
func (h Handlers) validateScaling(ctx context.Context, req admission.Request) (answer, error) {
	if changes, err := scales(req); err != nil || !changes {
		return allow(), err
	}
	stay, err := h.held(ctx, func(ctx context.Context, reader observe.Reader) (bool, error) {
		return h.moves(ctx, reader, key(req))
	})
	if err != nil || !stay {
		return allow(), err
	}
	return deny(held, h.scalingRefused(ctx, req)), nil
}

// scalingRefused is a Conflict, which the Deployment controller takes without an event. It tries again later, unless that is too often: see retries. A
// refusal after which it does not has to be right at this moment: what ends the hold later wakes the controller, and what has ended it does no more.
func (h Handlers) scalingRefused(ctx context.Context, req admission.Request) *apierrors.StatusError {
	why := errors.New("stayput moves the pods of this Deployment in place; its replicas are held meanwhile")
	refused := apierrors.NewConflict(appsv1.Resource("replicasets"), req.Name, why)
	if h.retries.allow(req.Namespace, time.Now()) {
		return refused
	}
	if stay, err := h.moves(ctx, h.Live.WithoutPods(), key(req)); err == nil && stay {
		refused.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause, Message: "to be tried again with the next event"}}
	}
	return refused
}

// validateCleanup keeps revisionHistoryLimit from deleting a ReplicaSet to which a pod is just moving, and the garbage collector that pod with it:
// the Deployment controller decides on a cache in which there may be none yet. It takes NotFound as done (cleanupDeployment in
// pkg/controller/deployment/sync.go), and comes again with its next event.
func (h Handlers) validateCleanup(ctx context.Context, req admission.Request) (answer, error) {
	rs, err := decode[apps.ReplicaSet](req.OldObject)
	if err != nil {
		return allow(), err
	}
	rs.Namespace = req.Namespace
	return h.holdDeletion(ctx, req, func(ctx context.Context) (bool, error) { return h.markHolds(ctx, rs) })
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

// moves reports whether the pods of the ReplicaSet's Deployment are being moved, or were until it was deleted.
func (h Handlers) moves(ctx context.Context, reader observe.Reader, key types.NamespacedName) (bool, error) {
	rollout, err := rolloutWith(ctx, reader, key)
	return rollout != nil && (h.holds(rollout) || rollout.Deleting()), err
}

// rolloutWith reads the rollout that the ReplicaSet is part of; nil if there is none.
func rolloutWith(ctx context.Context, reader observe.Reader, key types.NamespacedName) (*deployments.Rollout, error) {
	rs, err := reader.ReplicaSet(ctx, key)
	if rs == nil || err != nil {
		return nil, err
	}
	return reader.RolloutOfReplicaSet(ctx, rs)
}
