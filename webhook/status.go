package webhook

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/internal/observe"
)

// validateStatus holds a status by which the Deployment controller says that a rollout is done while it is not. With surge pods, the
// Deployment can have as many updated and available pods as it wants while another pod is moving between two ReplicaSets: neither
// ReplicaSet counts that pod. Lowering the replicas of the new ReplicaSet for that moment would avoid this. But if all managers ended
// then, a pod that serves would be deleted.
//
// All other statuses pass, above all those of the previous generation: the controller needs them to note new ReplicaSets and collisions
// of their names. When Stayput removes its marks in the end, the controller looks again.
func (h Handlers) validateStatus(ctx context.Context, req admission.Request) (answer, error) {
	if req.SubResource != "status" {
		return allow(), nil
	}
	deployment, err := decode[apps.Deployment](req.Object)
	if err != nil {
		return allow(), err
	}
	if !deployments.LooksComplete(deployment, deployment.Status) {
		return allow(), nil
	}
	stored, err := observe.Find[apps.Deployment](ctx, h.Live, key(req))
	if stored == nil || err != nil {
		return allow(), err
	}
	rollout, err := h.Live.WithoutPods().RolloutOf(ctx, stored)
	if err != nil || !h.holds(rollout) {
		return allow(), err
	}
	why := errors.New("stayput has not finished updating the pods of this Deployment")
	return deny(held, apierrors.NewConflict(appsv1.Resource("deployments"), req.Name, why)), nil
}
