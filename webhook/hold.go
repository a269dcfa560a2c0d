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

// held is for what needs no pods. Nothing is held without a living leader.
func (h Handlers) held(ctx context.Context, ask func(context.Context, observe.Reader) (bool, error)) (bool, error) {
	if alive, err := h.alive(ctx); err != nil || !alive {
		return false, err
	}
	return h.either(ctx, func(ctx context.Context, reader observe.Reader) (bool, error) { return ask(ctx, reader.WithoutPods()) })
}

// either asks the cache first and believes a "no" only from the API server: a denied write comes again, one let through cannot be taken back.
func (h Handlers) either(ctx context.Context, ask func(context.Context, observe.Reader) (bool, error)) (bool, error) {
	for _, reader := range []observe.Reader{h.Cached, h.Live} {
		if yes, err := ask(ctx, reader); yes || err != nil {
			return yes, err
		}
	}
	return false, nil
}

// lasts reports whether the leader tends the update of a workload to that target, or can still be expected to begin. In the place of the target
// there may be another of its revisions that is marked, or none while nobody has made it.
func (h Handlers) lasts(workload metav1.Object, template apps.Template, updateRevision metav1.Object) bool {
	now := time.Now()
	var labels map[string]string
	if updateRevision != nil {
		labels = updateRevision.GetLabels()
	}
	lasts := revisions.HoldLasts(labels, h.heldSince(workload, template, updateRevision, now), now)
	if !lasts {
		h.Log.V(1).Info("Nothing is held", "namespace", workload.GetNamespace(), "workload", workload.GetName(), "reason", revisions.HoldExpired.Message)
	}
	return lasts
}

// heldSince is since when this replica has held writes of the update; now, where the leader has begun it and says by itself that it goes on.
func (h Handlers) heldSince(workload metav1.Object, template apps.Template, updateRevision metav1.Object, now time.Time) time.Time {
	if updateRevision != nil && revisions.Started(updateRevision.GetLabels()) {
		return now
	}
	return h.holdStarts.of(holdStartOf(workload, template, updateRevision), now)
}

// holdStarts are since when this replica has held writes of updates. The leader writes on the target when it tends one: this is needed only
// until it first has.
type holdStarts struct {
	lock  sync.Mutex
	since map[holdStart]time.Time
}

// holdStart is the update of a workload to a target. By the number of its revision it differs from an earlier one to the same: native
// controllers give a target the next number each time. As long as there is no target, it differs by the template.
type holdStart struct {
	workload, updateRevision types.UID
	revision                 string
}

func holdStartOf(workload metav1.Object, template apps.Template, updateRevision metav1.Object) holdStart {
	if updateRevision == nil {
		return holdStart{workload: workload.GetUID(), revision: template.Hash()}
	}
	return holdStart{workload.GetUID(), updateRevision.GetUID(), revisions.RevisionNumber(updateRevision)}
}

func newHoldStarts() *holdStarts { return &holdStarts{since: map[holdStart]time.Time{}} }

// holdStartsKept is how long one is remembered: longer than any hold lasts that nobody tends.
const holdStartsKept = 10 * time.Minute

// of is since when writes of the update have been held: now, if none have.
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
