package webhook

import (
	"context"
	"slices"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/observe"
)

// held asks the cache first and believes a "no" only from the API server: a denied write comes again, one let through
// cannot be taken back. Nothing is held without a living leader.
func (h Handlers) held(ctx context.Context, ask func(context.Context, observe.Reader) (bool, error)) (bool, error) {
	alive, why, err := h.Hold.Alive(ctx)
	if err != nil || !alive {
		h.Log.V(1).Info("Nothing is held", "reason", why)
		return false, err
	}
	for _, reader := range []observe.Reader{h.Cached, h.Live} {
		if held, err := ask(ctx, reader.WithoutPods()); held || err != nil {
			return held, err
		}
	}
	return false, nil
}

// verdict judges the rollout towards the template, as it is or will be once the Deployment controller has made the
// revision. Which template that is depends on who asks: the controller may act on an edit that is not the latest one,
// or that the cache has not seen.
func verdict(rollout *inplace.Rollout, template inplace.Template) inplace.Verdict {
	towards, deployment := *rollout, *rollout.Deployment
	deployment.Spec.Template = template
	towards.Deployment = &deployment
	if towards.Target() == nil {
		towards.ReplicaSets = append(slices.Clone(rollout.ReplicaSets), unborn(template))
	}
	return towards.Verdict()
}

func unborn(template inplace.Template) *inplace.ReplicaSet {
	rs := &inplace.ReplicaSet{}
	rs.Spec.Template = template
	return rs
}
