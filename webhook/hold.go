package webhook

import (
	"context"

	"github.com/stayput/stayput/observe"
)

// held asks the cache first and believes a "no" only from the API server: a denied write comes again, one let through
// cannot be taken back. Nothing is held without a living leader.
func (h Handlers) held(ctx context.Context, ask func(context.Context, observe.Reader) (bool, error)) (bool, error) {
	if alive, err := h.alive(ctx); err != nil || !alive {
		return false, err
	}
	for _, reader := range []observe.Reader{h.Cached, h.Live} {
		if held, err := ask(ctx, reader.WithoutPods()); held || err != nil {
			return held, err
		}
	}
	return false, nil
}

func (h Handlers) alive(ctx context.Context) (bool, error) {
	alive, why, err := h.Hold.Alive(ctx)
	if err == nil && !alive {
		h.Log.V(1).Info("Nothing is held", "reason", why)
	}
	return alive, err
}
