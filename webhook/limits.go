package webhook

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// limit is when judging a request must have ended, since all it waits for ends with port.Patience.
const limit = 15 * time.Second

// lookups is how often the API server is asked about a namespace that is not labelled by what we know: ten times at once, five a second.
func lookups() *rate.Limiter { return rate.NewLimiter(5, 10) }

// recounts is how often pods of a ReplicaSet, of which there may be thousands, are counted at the API server before one more is born. Many are born where
// some are borrowed, or the Deployment is scaled; of who has moved a cache is behind for some milliseconds.
func recounts() *rate.Limiter { return rate.NewLimiter(1, 5) }

var errTooManyNamespaces = errors.New("too many questions about namespaces whose label is not known yet")

// ours has requests judged that API servers would send: of these kinds, in a labelled namespace. Any other is allowed without a word
// and without a look at its objects.
func (h Handlers) ours(handler handler, kinds ...string) handler {
	return func(ctx context.Context, req admission.Request) (answer, error) {
		if !slices.Contains(kinds, req.Kind.Kind) {
			return allow(), nil
		}
		if managed, err := h.manages(ctx, req.Namespace); err != nil || !managed {
			return allow(), err
		}
		return handler(ctx, req)
	}
}

// manages asks the cache, and a few times the API server: people label a namespace and edit at once.
func (h Handlers) manages(ctx context.Context, namespace string) (bool, error) {
	mode, err := h.Cached.Mode(ctx, namespace, nil)
	if apierrors.IsNotFound(err) || err == nil && !mode.Manages() {
		if !h.lookups.Allow() {
			return false, errTooManyNamespaces
		}
		mode, err = h.Live.Mode(ctx, namespace, nil)
	}
	return mode.Manages(), client.IgnoreNotFound(err)
}
