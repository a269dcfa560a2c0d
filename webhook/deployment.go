package webhook

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/internal/observe"
)

func (s Sources) decideDeployment(ctx context.Context, req admission.Request, before *workload) (editDecision, error) {
	deployment, err := decode[apps.Deployment](req.Object)
	if err != nil {
		return editDecision{}, err
	}
	stored, err := observe.Find[apps.Deployment](ctx, s.Live, key(req))
	if stored == nil || err != nil {
		return editDecision{}, err
	}
	deployment.Namespace, deployment.UID, deployment.Spec.Selector = stored.Namespace, stored.UID, stored.Spec.Selector
	rollout, kept, err := s.undone(ctx, req, deployment, before)
	if err != nil || !rollout.Seen.Mode.Manages() {
		return editDecision{}, err
	}
	s.addBudgets(ctx, req, &rollout.Seen)
	decided := editDecisionOf(rollout.Preview(before.Spec.Template))
	decided.kept = kept
	return decided, nil
}

// undone reads the rollout of an edited Deployment. If the edit is an undo, it also returns the annotations that stay as they were. A
// client that applies manifests names its field manager, and means what it writes. kubectl rollout undo and the Deployment controller
// name none.
func (s Sources) undone(
	ctx context.Context, req admission.Request, d *apps.Deployment, before *workload,
) (*deployments.Rollout, []patches.EntryChange, error) {
	rollout, err := s.Live.WithoutPods().RolloutOf(ctx, d)
	var options metav1.PatchOptions
	if err != nil || json.Unmarshal(req.Options.Raw, &options) == nil && options.FieldManager != "" {
		return rollout, nil, err
	}
	kept := rollout.Undone(before.Annotations)
	if len(kept) == 0 {
		return rollout, nil, nil
	}
	d.Annotations = patches.Changed(d.Annotations, kept)
	rollout, err = s.Live.WithoutPods().RolloutOf(ctx, d)
	return rollout, kept, err
}
