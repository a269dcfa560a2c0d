package webhook

import (
	"context"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/observe"
)

// held reports whether a write is held, where that depends on no pods. Without a living leader nothing is held.
func (h Handlers) held(ctx context.Context, ask func(context.Context, observe.Reader) (bool, error)) (bool, error) {
	if alive, err := h.alive(ctx); err != nil || !alive {
		return false, err
	}
	return h.either(ctx, func(ctx context.Context, reader observe.Reader) (bool, error) { return ask(ctx, reader.WithoutPods()) })
}

// either asks the cache first, and believes a "no" only from the API server: a denied write comes again, a write that was allowed cannot
// be taken back.
func (h Handlers) either(ctx context.Context, ask func(context.Context, observe.Reader) (bool, error)) (bool, error) {
	for _, reader := range []observe.Reader{h.Cached, h.Live} {
		if yes, err := ask(ctx, reader); yes || err != nil {
			return yes, err
		}
	}
	return false, nil
}

// lasts reports whether the hold on the workload's update to that revision lasts: the leader renews it, or can still be expected to
// begin. UpdateRevision may also be another marked revision of the workload, or nil while the update revision does not exist.
func (h Handlers) lasts(workload metav1.Object, template apps.Template, updateRevision metav1.Object) bool {
	now := time.Now()
	var labels map[string]string
	if updateRevision != nil {
		labels = updateRevision.GetLabels()
	}
	lasts := revisions.HoldLasts(labels, h.heldSince(workload, template, updateRevision, now), now)
	if !lasts {
		h.Log.V(1).Info("Nothing is held",
			"namespace", workload.GetNamespace(), "workload", workload.GetName(), "reason", revisions.HoldExpired.Message)
	}
	return lasts
}

// heldSince returns since when this replica has held writes of the update. It returns now if the leader has begun the update: the leader
// then renews the hold itself.
func (h Handlers) heldSince(workload metav1.Object, template apps.Template, updateRevision metav1.Object, now time.Time) time.Time {
	if updateRevision != nil && revisions.Started(updateRevision.GetLabels()) {
		return now
	}
	return h.holdStarts.of(holdStartOf(workload, template, updateRevision), now)
}

// holdStarts are the times since when this replica has held writes of updates. The leader writes its renewals on the update revision. So
// these times matter only until the first renewal.
type holdStarts struct {
	lock  sync.Mutex
	since map[holdStart]time.Time
}

// holdStart identifies the update of a workload to an update revision. The revision's number distinguishes it from an earlier update to
// the same revision: native controllers give a revision the next number each time it becomes the update revision. While there is no
// update revision, the template distinguishes updates.
type holdStart struct {
	workload, updateRevision types.UID
	revision, stage          string
}

// inStages is a workload whose update begins in stages, at different times.
type inStages interface{ Stage() string }

func holdStartOf(workload metav1.Object, template apps.Template, updateRevision metav1.Object) holdStart {
	start := holdStart{workload: workload.GetUID(), revision: template.Hash()}
	if updateRevision != nil {
		start.updateRevision, start.revision = updateRevision.GetUID(), revisions.RevisionNumber(updateRevision)
	}
	if in, is := workload.(inStages); is {
		start.stage = in.Stage()
	}
	return start
}

func newHoldStarts() *holdStarts { return &holdStarts{since: map[holdStart]time.Time{}} }

// holdStartsKept is how long a start is remembered: longer than any hold lasts without a renewal.
const holdStartsKept = 10 * time.Minute

// of returns since when writes of the update have been held; now if none have been held before.
func (b *holdStarts) of(update holdStart, now time.Time) time.Time {
	b.lock.Lock()
	defer b.lock.Unlock()
	maps.DeleteFunc(b.since, func(_ holdStart, since time.Time) bool { return now.Sub(since) > holdStartsKept })
	if since, known := b.since[update]; known {
		return since
	}
	b.since[update] = now
	return now
}

func (h Handlers) alive(ctx context.Context) (bool, error) {
	alive, why, err := h.Hold.Alive(ctx)
	if err == nil && !alive {
		h.Log.V(1).Info("Nothing is held", "reason", why)
	}
	return alive, err
}
