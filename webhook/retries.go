package webhook

import (
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// The Deployment controller retries after a Conflict: first after 5 ms, and then 14 times more, each time after twice the last delay.
// Every event of the Deployment starts that anew, and Stayput's renewal once a minute is such an event. Where many Deployments wait for
// an image or at a partition, these futile retries use up the 20 requests a second that the controller has for the whole cluster.
//
// So a refusal says that the controller need not retry (handleErr in pkg/controller/deployment/deployment_controller.go) while a pod is
// not available yet: the controller looks again when it is. Otherwise a namespace gets as many retries as one Deployment needs, so that
// one is still to come if all managers are killed. All namespaces together get a few times more. Beyond that, the controller looks again
// at its next event, and all that ends a hold is such an event.
const (
	// retriesOfNamespace is how many retries one refusal leads to. retriesAgain is about their mean interval: 15 retries take 164 s.
	retriesOfNamespace = 15
	retriesAgain       = 10 * time.Second
	// retriesOfAll is the limit for all namespaces together, and retriesOfAllRate is how many more they get each second.
	retriesOfAll     = 60
	retriesOfAllRate = 1
)

// retries counts the refusals after which the Deployment controller retries by itself.
type retries struct {
	lock  sync.Mutex
	all   *rate.Limiter
	among map[string]*rate.Limiter
}

func newRetries() *retries {
	return &retries{all: rate.NewLimiter(retriesOfAllRate, retriesOfAll), among: map[string]*rate.Limiter{}}
}

// allow reports whether the namespace may get one more such refusal.
func (r *retries) allow(namespace string, now time.Time) bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	maps.DeleteFunc(r.among, func(_ string, of *rate.Limiter) bool { return of.TokensAt(now) >= retriesOfNamespace })
	if r.among[namespace] == nil {
		r.among[namespace] = rate.NewLimiter(rate.Every(retriesAgain), retriesOfNamespace)
	}
	return r.among[namespace].AllowN(now, 1) && r.all.AllowN(now, 1)
}
