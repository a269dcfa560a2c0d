package webhook

import (
	"context"
	"errors"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/statuses"
)

// validateStatus holds the Deployment controller's word that a rollout is done while it is not. With borrowed pods there can be as many
// updated and available ones as the Deployment wants while one of the others is on its way between two ReplicaSets, where nobody
// counts it. Lowering the target for that moment would avoid it, but if we died then, a pod that serves would be deleted.
//
// All other statuses pass, above all those of the generation before: by them the controller notes new ReplicaSets and collisions of
// their names. Taking our marks off in the end wakes it.
func (h Handlers) validateStatus(ctx context.Context, req admission.Request) (answer, error) {
	if !by(req, deploymentController, admissionv1.Update) || req.SubResource != "status" {
		return allow(), nil
	}
	deployment, err := decode[apps.Deployment](req.Object)
	if err != nil {
		return allow(), err
	}
	if !statuses.Announces(deployment, deployment.Status) {
		return allow(), nil
	}
	if alive, err := h.alive(ctx); err != nil || !alive {
		return allow(), err
	}
	stored, err := h.Live.Deployment(ctx, key(req))
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
