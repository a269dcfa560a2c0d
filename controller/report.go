package controller

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
)

// The reasons of the events Stayput records: on Deployments, and the last one on pods.
const (
	EventStarted   = "InPlaceUpdateStarted"
	EventCompleted = "InPlaceUpdateCompleted"
	EventStalled   = "InPlaceUpdateStalled"
	EventReleased  = "InPlaceUpdateReleased"
	EventRecreated = "UpdateRecreatesPods"
	EventMoved     = "UpdatedInPlace"
)

// longestNote is what events.k8s.io takes (pkg/apis/core/validation/events.go).
const longestNote = 1024

// reporter tells people what happened: events and metrics, only after the writes they speak of. It tells transitions it sees
// in the objects; what it remembers keeps them from being told twice, and is never asked for a decision. A process that finds
// an update under way takes it over silently.
type reporter struct {
	recorder events.EventRecorder
	metrics  *metrics

	lock      sync.Mutex
	updates   map[types.NamespacedName]*update
	recreates map[types.NamespacedName]types.UID // target already told to be recreated
}

// update is an update in place that is under way.
type update struct {
	target  types.UID
	mode    inplace.Mode
	started time.Time
	stalled bool
	away    map[types.UID]time.Time // since when a pod has not been Ready
}

func newReporter(recorder events.EventRecorder, metrics *metrics) *reporter {
	return &reporter{
		recorder:  recorder,
		metrics:   metrics,
		updates:   map[types.NamespacedName]*update{},
		recreates: map[types.NamespacedName]types.UID{},
	}
}

// report tells what the writes have changed and what the plan has found out.
func (r *reporter) report(rollout *inplace.Rollout, plan inplace.Plan, writes []write) {
	r.lock.Lock()
	defer r.lock.Unlock()
	n := news{reporter: r, key: client.ObjectKeyFromObject(rollout.Deployment), rollout: rollout, plan: plan, writes: writes}
	n.begun()
	n.moves()
	n.absences()
	n.stalled()
	n.released()
	n.recreated()
	n.completed()
	r.metrics.inFlight.Set(float64(len(r.updates)))
}

// gone ends the update of a Deployment that was deleted.
func (r *reporter) gone(deployment types.NamespacedName) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.failed(deployment, "Deleted")
	delete(r.recreates, deployment)
	r.metrics.inFlight.Set(float64(len(r.updates)))
}

// failed ends an update that was not completed in place. One that had stalled has failed for that.
func (r *reporter) failed(deployment types.NamespacedName, reason string) {
	ended, ok := r.updates[deployment]
	if !ok {
		return
	}
	if ended.stalled {
		reason = "Stalled"
	}
	delete(r.updates, deployment)
	r.metrics.failed.WithLabelValues(string(ended.mode), reason).Inc()
}

func (r *reporter) event(regarding runtime.Object, kind, reason, note string) {
	if len(note) > longestNote {
		note = note[:longestNote-3] + "..."
	}
	r.recorder.Eventf(regarding, nil, kind, reason, "Update", "%s", note)
}

// news is what one reconcile of one Deployment has to tell.
type news struct {
	*reporter
	key     types.NamespacedName
	rollout *inplace.Rollout
	plan    inplace.Plan
	writes  []write
}

func (n news) current() *update { return n.updates[n.key] }

// begun notices an update whose target is marked: a new one if we just put the mark or the target has changed, else one that
// another leader began.
func (n news) begun() {
	target := n.plan.Verdict.Target
	if target == nil || !n.plan.Verdict.Held {
		return
	}
	now, settling := n.settling(target)
	known := n.current()
	if !settling || known != nil && known.target == target.UID {
		return
	}
	adopted := known == nil && !now
	n.failed(n.key, "Superseded")
	n.updates[n.key] = &update{target: target.UID, mode: n.rollout.Mode, started: n.rollout.Now, away: map[types.UID]time.Time{}}
	delete(n.recreates, n.key)
	if adopted {
		n.adopt(n.current())
		return
	}
	n.metrics.started.WithLabelValues(string(n.rollout.Mode)).Inc()
	n.event(n.rollout.Deployment, corev1.EventTypeNormal, EventStarted, fmt.Sprintf("Moving running pods to ReplicaSet %s", target.Name))
}

// settling tells whether the ReplicaSet is marked, and whether it is so just now.
func (n news) settling(replicaSet *inplace.ReplicaSet) (now, settling bool) {
	for _, w := range n.writes {
		if after, ok := w.after.(*inplace.ReplicaSet); ok && after.UID == replicaSet.UID && inplace.Settling(after) {
			return !inplace.Settling(replicaSet), true
		}
	}
	return false, inplace.Settling(replicaSet)
}

// adopt takes over an update as another leader has left it.
func (n news) adopt(known *update) {
	if started := n.plan.Progress.Started; !started.IsZero() {
		known.started = started
	}
	known.stalled = exceededDeadline(n.rollout.Deployment.Status)
}

// moves tells each pod that was given new images, a new ReplicaSet, or both.
func (n news) moves() {
	for _, w := range n.writes {
		step, ok := w.step.(inplace.PatchPod)
		if !ok {
			continue
		}
		images := imageChanges(step.Pod, w.after.(*corev1.Pod))
		if step.Moves {
			n.metrics.moved.Inc()
		}
		if step.Moves || images != "" {
			n.event(step.Pod, corev1.EventTypeNormal, EventMoved, cmp.Or(images, step.Why))
		}
	}
}

// imageChanges lists the containers whose image differs: "app: web:1 -> web:2".
func imageChanges(before, after *corev1.Pod) string {
	from := map[string]string{}
	for _, container := range before.Spec.Containers {
		from[container.Name] = container.Image
	}
	var changes []string
	for _, container := range after.Spec.Containers {
		if old := from[container.Name]; old != container.Image {
			changes = append(changes, fmt.Sprintf("%s: %s -> %s", container.Name, old, container.Image))
		}
	}
	return strings.Join(changes, ", ")
}

// absences measures how long pods of an update are not Ready.
func (n news) absences() {
	known := n.current()
	if known == nil {
		return
	}
	for _, pod := range n.rollout.Pods {
		ready := isTrue(pod, corev1.PodReady)
		since, away := known.away[pod.UID]
		switch {
		case !ready && !away && n.isOurs(pod):
			known.away[pod.UID] = n.rollout.Now
		case ready && away:
			n.metrics.unavailable.Observe(n.rollout.Now.Sub(since).Seconds())
			delete(known.away, pod.UID)
		}
	}
}

// isOurs tells whether it is us who have a hand in a pod's being not Ready.
func (n news) isOurs(pod *corev1.Pod) bool {
	return isClosed(pod) || pod.Annotations[inplace.AnnotationMove] != ""
}

// stalled tells once that an update does not get on.
func (n news) stalled() {
	known := n.current()
	if known == nil || known.stalled || n.plan.Phase != inplace.PhaseStalled {
		return
	}
	known.stalled = true
	n.event(n.rollout.Deployment, corev1.EventTypeWarning, EventStalled, n.plan.Message)
}

// released tells that an update begun in place was given back.
func (n news) released() {
	known := n.current()
	if known == nil || !n.justReleased() {
		return
	}
	reasons := n.plan.Verdict.Reasons
	note := cmp.Or(n.plan.Message, reasons.String())
	n.event(n.rollout.Deployment, corev1.EventTypeWarning, EventReleased, "Left to the Deployment controller: "+note)
	n.failed(n.key, firstCode(reasons, "Released"))
	n.recreates[n.key] = known.target
}

// justReleased tells whether one of the writes put the mark of a released update.
func (n news) justReleased() bool {
	for _, w := range n.writes {
		before, ok := w.before.(*inplace.ReplicaSet)
		if ok && before.Labels[inplace.LabelReleased] == "" && w.after.GetLabels()[inplace.LabelReleased] != "" {
			return true
		}
	}
	return false
}

// recreated tells why an edit is left to the native controller, when its ReplicaSet has no pods yet: later it is no news.
func (n news) recreated() {
	target, reasons := n.plan.Verdict.Target, n.plan.Verdict.Reasons
	if target == nil || n.plan.Verdict.Held || len(reasons) == 0 || n.recreates[n.key] == target.UID {
		return
	}
	n.failed(n.key, firstCode(reasons, "Superseded"))
	n.recreates[n.key] = target.UID
	if target.Status.Replicas == 0 && n.rollout.Mode.Manages() && reasons[0].Code != inplace.CodeReleased {
		n.event(n.rollout.Deployment, corev1.EventTypeNormal, EventRecreated, "Pods are recreated: "+reasons.String())
	}
}

// completed tells that the last pod is where it belongs, available, and nothing of ours is left.
func (n news) completed() {
	known, target := n.current(), n.plan.Verdict.Target
	if known == nil || target == nil || target.UID != known.target || len(n.rollout.Sources()) > 0 || anySettling(n.rollout) || !isComplete(n.rollout.Deployment) {
		return
	}
	took := n.rollout.Now.Sub(known.started)
	n.metrics.completed.WithLabelValues(string(known.mode)).Inc()
	n.metrics.duration.Observe(took.Seconds())
	n.event(n.rollout.Deployment, corev1.EventTypeNormal, EventCompleted, "Running pods were updated in place in "+took.Round(100*time.Millisecond).String())
	delete(n.updates, n.key)
}

func firstCode(reasons inplace.Reasons, otherwise string) string {
	if len(reasons) == 0 {
		return otherwise
	}
	return reasons[0].Code
}
