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

// limit is how long deciding a request may take: all that it waits for ends with port.Patience.
const limit = 15 * time.Second

// lookups limits how often the API server is asked about a namespace that is not labelled according to the cache: ten times at once, five
// times a second.
func lookups() *rate.Limiter { return rate.NewLimiter(5, 10) }

// recounts limits how often the pods of a ReplicaSet are counted at the API server before one more is created. A ReplicaSet may have
// thousands of pods. Many pods are created when an update needs surge pods, or when a user scales the Deployment. A cache knows of a
// moved pod some milliseconds late.
func recounts() *rate.Limiter { return rate.NewLimiter(1, 5) }

var errTooManyNamespaces = errors.New("too many lookups of namespaces that the cache does not know as labelled")

// managedNamespaces knows in which namespaces Stayput manages workloads.
type managedNamespaces struct {
	Sources
	lookups *rate.Limiter
}

// onlyManaged returns a handler that passes on only requests that API servers would send: for objects of these kinds, in a labelled
// namespace. It allows any other request without a warning, and does not look at its objects.
func (n managedNamespaces) onlyManaged(handler handler, kinds ...string) handler {
	return func(ctx context.Context, req admission.Request) (answer, error) {
		if !slices.Contains(kinds, req.Kind.Kind) {
			return allow(), nil
		}
		if managed, err := n.manages(ctx, req.Namespace); err != nil || !managed {
			return allow(), err
		}
		return handler(ctx, req)
	}
}

// manages reports whether Stayput manages the namespace. It asks the cache, and then the API server a few times a second: users label a
// namespace and edit at once. No lookup is spent on namespaces that are never managed: from there the check of an installation asks every
// webhook at once.
func (n managedNamespaces) manages(ctx context.Context, namespace string) (bool, error) {
	if n.Cached.ExcludedNamespaces.Has(namespace) {
		return false, nil
	}
	mode, err := n.Cached.NamespaceMode(ctx, namespace)
	if apierrors.IsNotFound(err) || err == nil && !mode.Manages() {
		if !n.lookups.Allow() {
			return false, errTooManyNamespaces
		}
		mode, err = n.Live.NamespaceMode(ctx, namespace)
	}
	return mode.Manages(), client.IgnoreNotFound(err)
}
