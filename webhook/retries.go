package webhook

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace/revisions"
)

// retriedAtATime is how many of the Deployments that wait for long, in a window or at a partition, get retries. After a Conflict the
// Deployment controller tries 16 times in 164 s (handleErr in pkg/controller/deployment/deployment_controller.go), and anew with each
// renewal of the leader. These futile tries take about a quarter of the 20 requests a second that the controller has for the whole cluster.
// Others wait for their next event, and all that ends a hold is one, but the death of all managers.
const retriedAtATime = 30

// retries remembers the Deployments that wait for long. The managers answer in turns, so they have to choose the same ones: the first by
// UID.
type retries struct {
	lock    sync.Mutex
	waiting map[types.UID]time.Time
}

func newRetries() *retries { return &retries{waiting: map[types.UID]time.Time{}} }

// allow reports whether the Deployment gets retries.
func (r *retries) allow(deployment types.UID, now time.Time) bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	maps.DeleteFunc(r.waiting, func(_ types.UID, asked time.Time) bool { return now.Sub(asked) > revisions.HoldDuration })
	r.waiting[deployment] = now
	before := 0
	for other := range r.waiting {
		if other < deployment {
			before++
		}
	}
	return before < retriedAtATime
}
