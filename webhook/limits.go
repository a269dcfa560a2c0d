package webhook

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// API servers show no certificate by default and their addresses are not known, so the port answers anybody in the cluster.
// These bounds keep what anybody can make us do below what would hurt.
const (
	// largest is how much of a body controller-runtime reads (maxRequestSize in pkg/webhook/admission/http.go).
	largest = 7 << 20
	// smallest is what any request counts for, since it has a goroutine and reads.
	smallest = 128 << 10
	// room is how much of requests may be under way: decoded they take up to some twenty times that, and a container has 1 GiB.
	room = 32 << 20
	// patience is a little less than the longest timeoutSeconds, so that there is still an answer that says why.
	patience = 4500 * time.Millisecond
	// limit is when judging a request must have ended, since all it waits for ends with patience.
	limit = 15 * time.Second
)

// bounded keeps requests within room and patience. One that finds no room gets no answer that would be a verdict, so that the
// webhook's failurePolicy decides. A manager that is told to go answers those it has, as ever: controller-runtime would cancel them first, and what
// cannot be read any more is allowed.
type bounded struct {
	room *semaphore.Weighted
	http.Handler
}

func (b bounded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	deadline := time.Now().Add(patience)
	// Only connections in tests have no deadlines.
	connection := http.NewResponseController(w)
	_ = connection.SetReadDeadline(deadline)
	_ = connection.SetWriteDeadline(deadline.Add(time.Second))
	size := sizeOf(r)
	if !b.room.TryAcquire(size) {
		http.Error(w, "stayput: too many requests are under way", http.StatusTooManyRequests)
		return
	}
	defer b.room.Release(size)
	ctx, cancel := context.WithDeadline(context.WithoutCancel(r.Context()), deadline)
	defer cancel()
	b.Handler.ServeHTTP(w, r.WithContext(ctx))
}

// sizeOf is how much room a request takes: no more is read of it than its header says, or than the most that is read of any.
func sizeOf(r *http.Request) int64 {
	if r.ContentLength < 0 {
		return largest
	}
	return min(max(r.ContentLength, smallest), largest)
}

// lookups is how often the API server is asked about a namespace that is not labelled by what we know: ten times at once, five a second.
func lookups() *rate.Limiter { return rate.NewLimiter(5, 10) }

// recounts is how often pods of a ReplicaSet, of which there may be thousands, are counted at the API server before one more is born. Many are born where
// some are borrowed, or the Deployment is scaled; of who has moved a cache is behind for some milliseconds.
func recounts() *rate.Limiter { return rate.NewLimiter(1, 5) }

var errTooManyNamespaces = errors.New("too many questions about namespaces whose label is not known yet")

// ours has requests judged that API servers would send: of these kinds, in a labelled namespace. Any other is allowed without a word
// and without a look at its objects.
func (h Handlers) ours(judge judge, kinds ...string) judge {
	return func(ctx context.Context, req admission.Request) (answer, error) {
		if !slices.Contains(kinds, req.Kind.Kind) {
			return allow(), nil
		}
		if managed, err := h.manages(ctx, req.Namespace); err != nil || !managed {
			return allow(), err
		}
		return judge(ctx, req)
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
