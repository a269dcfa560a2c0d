package webhook

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/internal/observe"
)

// Sources are what the webhooks read.
type Sources struct {
	// Cached reads from informers. It must fail on a kind without an informer (a strict cache) instead of starting one.
	Cached observe.Reader
	// Live reads from the API server. Its client must not limit its own rate: a native controller waits for each answer.
	Live observe.Reader
	Hold observe.Hold
	Log  logr.Logger
}

// either reports whether one of the sources says yes. A "yes, held" from the cache is enough: a denied write comes again. A "no" is
// believed only from the API server: a write that was allowed cannot be taken back.
func (s Sources) either(says func(observe.Reader) (bool, error)) (bool, error) {
	if yes, err := says(s.Cached); yes || err != nil {
		return yes, err
	}
	return says(s.Live)
}

// cacheSays reports whether the cache says yes where the API server could not be read in time. A native controller loses a pod if a slow
// API server counts as one that has ended the hold. The controller must be refused with a Conflict then, so that it asks again. It is not
// refused for long: a cache that no longer follows the API server soon has no leader that renews its Lease.
func (s Sources) cacheSays(ctx context.Context, unread error, says func(context.Context) (bool, error)) bool {
	yes, err := says(context.WithoutCancel(ctx))
	if yes && err == nil {
		s.Log.V(1).Info("Held by what the cache has, because the API server could not be read", "error", briefly(unread).Error())
		return true
	}
	return false
}

// lasts reports whether the hold on the workload's update lasts by that revision: the leader renews it, or can still be expected to begin.
// The revision may be any marked one of the workload, or nil while none is marked and the update revision does not exist. Only then does
// the template count.
func (h Handlers) lasts(workload metav1.Object, template apps.Template, by metav1.Object) bool {
	now := time.Now()
	var labels map[string]string
	if by != nil {
		labels = by.GetLabels()
	}
	lasts := revisions.HoldLasts(labels, h.holdStarts.since(workload, template, by, now), now)
	if !lasts {
		h.Log.V(1).Info("Nothing is held",
			"namespace", workload.GetNamespace(), "workload", workload.GetName(), "reason", revisions.HoldExpired.Message)
	}
	return lasts
}

// holdStarts are the times since when this replica has held writes of updates, by holdStart. The leader writes its renewals on the update
// revision, so these times matter only until the first renewal.
type holdStarts struct{ *cache.Expiring }

// since returns since when this replica has held writes of the update. It returns now if the leader has begun the update: the leader
// then renews the hold itself. An undo takes the leader's mark away. If the user makes the same edit again at once, the native controller
// has seen neither and the revision keeps its number, but it is another update: so what was held before the mark is forgotten.
func (h holdStarts) since(workload metav1.Object, template apps.Template, updateRevision metav1.Object, now time.Time) time.Time {
	update := holdStartOf(workload, template, updateRevision)
	if updateRevision != nil && revisions.Started(updateRevision.GetLabels()) {
		h.Delete(update)
		return now
	}
	if since, known := h.Get(update); known {
		return since.(time.Time)
	}
	h.Set(update, now, inplace.Remembered)
	return now
}

// holdStart identifies the update of a workload to an update revision. The revision's number distinguishes it from an earlier update to
// the same revision: native controllers give a revision the next number each time it becomes the update revision. While there is no
// update revision, the template distinguishes updates.
type holdStart struct {
	workload, updateRevision types.UID
	revision                 string
	// stage is that of a StatefulSet, whose update begins in stages, at different times.
	stage string
}

func holdStartOf(workload metav1.Object, template apps.Template, updateRevision metav1.Object) holdStart {
	start := holdStart{workload: workload.GetUID()}
	if updateRevision != nil {
		start.updateRevision, start.revision = updateRevision.GetUID(), line(revisions.RevisionNumber(updateRevision))
	} else {
		start.revision = template.Hash()
	}
	if s, is := workload.(*apps.StatefulSet); is {
		start.stage = s.Stage()
	}
	return start
}

func (s Sources) alive(ctx context.Context) (bool, error) {
	alive, why, err := s.Hold.Alive(ctx)
	if why != "" {
		s.Log.V(1).Info("Nothing is held", "reason", why)
	}
	return alive, err
}
