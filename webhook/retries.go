package webhook

import (
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// The Deployment controller answers a Conflict by a try after 5 ms, and by 14 more, each after twice the time of the last. Every event of the Deployment
// begins that anew, our signature once a minute among them. Where many Deployments wait, for an image or a partition, their tries in vain take up the 20 requests
// a second that the controller has for all of a cluster. So a namespace is answered like that as often as one Deployment needs, so that a try is still to come
// when all managers are killed, and all namespaces together a few times more. Beyond that a refusal says that the controller need not try again
// (handleErr in pkg/controller/deployment/deployment_controller.go): its next event will have it look again, and whatever ends a hold is one.
const (
	// retriesOfNamespace is all that one refusal leads to, and retriesAgain about as many as last: 15 in 164 s.
	retriesOfNamespace = 15
	retriesAgain       = 10 * time.Second
	// retriesOfAll is for all namespaces, and that many a second.
	retriesOfAll     = 60
	retriesOfAllRate = 1
)

// retries counts the refusals after which the Deployment controller tries again by itself.
type retries struct {
	lock  sync.Mutex
	all   *rate.Limiter
	among map[string]*rate.Limiter
}

func newRetries() *retries {
	return &retries{all: rate.NewLimiter(retriesOfAllRate, retriesOfAll), among: map[string]*rate.Limiter{}}
}

// allow reports whether one more may be caused in the namespace.
func (r *retries) allow(namespace string, now time.Time) bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	maps.DeleteFunc(r.among, func(_ string, of *rate.Limiter) bool { return of.TokensAt(now) >= retriesOfNamespace })
	if r.among[namespace] == nil {
		r.among[namespace] = rate.NewLimiter(rate.Every(retriesAgain), retriesOfNamespace)
	}
	return r.among[namespace].AllowN(now, 1) && r.all.AllowN(now, 1)
}
