package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stayput/stayput/controller/write"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/internal/observe"
)

// These are the reasons of the events that Stayput records: on workloads, and the last four on pods. docs/reference/events.md
// is generated from these comments.
const (
	// EventStarted tells that pods begin to be moved to a new revision.
	EventStarted = "InPlaceUpdateStarted"
	// EventCompleted tells that every pod is updated and available, and how long that took.
	EventCompleted = "InPlaceUpdateCompleted"
	// EventStalled tells that progressDeadlineSeconds have passed and what the update waits for, or what is wrong with the partition.
	EventStalled = "InPlaceUpdateStalled"
	// EventPartition tells how many pods have moved when all that may move have. At `100%` it tells how many nodes have the new
	// images. It comes once for each value of the partition.
	EventPartition = "InPlaceUpdateAtPartition"
	// EventWindow tells that the update waits for its maintenance window, and when that opens.
	EventWindow = "InPlaceUpdateAwaitsWindow"
	// EventWaits tells why pods cannot be updated in place, and what ends that. No pod is replaced, because a window is closed, a partition
	// keeps all pods, or the mode is `in-place-only`. It comes every half hour.
	EventWaits = "InPlaceUpdateWaits"
	// EventAwaitsBudget tells which PodDisruptionBudget has allowed no disruption for ten seconds, and why.
	EventAwaitsBudget = "InPlaceUpdateAwaitsBudget"
	// EventAwaitsHook tells which hook has held a pod that is out of service for ten seconds, and which pod that is.
	EventAwaitsHook = "InPlaceUpdateAwaitsHook"
	// EventHookTimedOut tells that containers restart although hooks still hold their pod, since `stayput.dev/pre-restart-timeout` has
	// passed.
	EventHookTimedOut = "PreRestartHookTimedOut"
	// EventAwaitsLimit tells which limit on the restarts of all workloads has let no pod of this one restart for ten seconds.
	EventAwaitsLimit = "InPlaceUpdateAwaitsLimit"
	// EventFellBack tells that an update begun in place was left to the native controller, and why.
	EventFellBack = "InPlaceUpdateFellBack"
	// EventRecreated tells why an edit is carried out natively, with new pods.
	EventRecreated = "UpdateRecreatesPods"
	// EventPullFailed tells of an image that cannot be pulled, so that nothing restarts for it.
	EventPullFailed = "ImagePullFailed"
	// EventNotPulled tells why containers stop before images are pulled.
	EventNotPulled = "PrePullSkipped"
	// EventNoDryRun tells why it is not known what admission makes of new pods.
	EventNoDryRun = "DryRunSkipped"
	// EventBypassed tells that a native write that a webhook should have held was not held: the API server may not reach the webhooks. If a
	// ReplicaSet was scaled, it names the client that did so, as far as that is known.
	EventBypassed = "WebhookBypassed"
	// EventMoved tells, on a pod, which images it was given.
	EventMoved = "UpdatedInPlace"
	// EventRestarts tells, on a pod, that a container restarts because an annotation of the pod asks for it.
	EventRestarts = "ContainerRestarts"
	// EventRestartWaits tells, on a pod, that containers restart later, as an annotation of the pod asks, because an update is in progress.
	EventRestartWaits = "ContainerRestartWaits"
	// EventRestartRefused tells, on a pod, why containers do not restart although an annotation of the pod asks for it.
	EventRestartRefused = "ContainerRestartRefused"
)

// These are reasons why an update in place failed, besides package inplace's reasons why an update is not made in
// place. Only metrics have them.
const (
	failedDeleted = "Deleted" // the workload was deleted meanwhile
	failedStalled = "Stalled" // it had stalled, whatever ended it then
)

// RecorderName is the reportingController of Stayput's events.
const RecorderName = "stayput"

// longestNote is the length of the longest note that events.k8s.io accepts (pkg/apis/core/validation/events.go).
const longestNote = 1024

// Reporter tells users what happened by events and metrics, only after the writes that these are about. It reports
// transitions that it sees in the objects. What it remembers only keeps it from reporting them twice, and no decision
// depends on it. A process that finds an update in progress does not report its start again.
type Reporter struct {
	kind     observe.Kind
	recorder events.EventRecorder
	metrics  *Metrics

	lock      sync.Mutex
	Updates   map[types.NamespacedName]*update
	recreates map[types.NamespacedName]types.UID // the update revisions whose recreation was reported
	guarded   map[types.NamespacedName]time.Time // see bypass.go
}

// update is an update in place that is in progress.
type update struct {
	updateRevision types.UID
	mode           inplace.Mode
	started        time.Time
	stalled        bool                    // it has stalled
	still          bool                    // it stalls now
	waits          string                  // the code of the reason for which it waits instead of falling back, as far as that was reported
	waitsTold      time.Time               // when that was
	since          map[string]time.Time    // since when pods wait, by what they wait for
	awaiting       map[string]int          // how many pods wait, by what they wait for
	refused        bool                    // it has waited for a PodDisruptionBudget for longer than patience
	told           map[string]bool         // what was reported once already
	away           map[types.UID]time.Time // since when a pod has not been Ready
}

// New returns a Reporter for one kind of workload.
func New(kind observe.Kind, recorder events.EventRecorder, metrics *Metrics) *Reporter {
	r := &Reporter{
		kind:      kind,
		recorder:  recorder,
		metrics:   metrics,
		Updates:   map[types.NamespacedName]*update{},
		recreates: map[types.NamespacedName]types.UID{},
		guarded:   map[types.NamespacedName]time.Time{},
	}
	metrics.inProgress.reporters = append(metrics.inProgress.reporters, r)
	return r
}

// Kind returns the kind of the workloads.
func (r *Reporter) Kind() string { return r.kind.Workload.Name }

// Report reports what the writes have changed and what the plan has found out.
func (r *Reporter) Report(rollout engine.Rollout, plan steps.Plan, writes []write.Done) {
	r.lock.Lock()
	defer r.lock.Unlock()
	n := news{Reporter: r, key: client.ObjectKeyFromObject(rollout.Workload()), rollout: rollout, seen: rollout.Snapshot(),
		plan: plan, writes: writes}
	n.namespace = r.metrics.Namespaces.In(n.key.Namespace)
	n.begun()
	n.moves()
	n.bypassed()
	if known := n.current(); known != nil {
		n.during(known)
	}
	n.recreated()
	n.completed()
}

// during reports what happens during an update in place.
func (n news) during(known *update) {
	n.preparations(known)
	n.absences(known)
	n.stages(known)
	n.awaits(known)
	n.waits(known)
	n.stalled(known)
	n.fellBack(known)
}

// Gone ends the update of a workload that was deleted.
func (r *Reporter) Gone(workload types.NamespacedName) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.failed(workload, r.metrics.Namespaces.In(workload.Namespace), failedDeleted)
	delete(r.recreates, workload)
	delete(r.guarded, workload)
}

// failed ends an update that was not completed in place, and counts it for the namespace. If it had stalled, that is the
// reason of the failure.
func (r *Reporter) failed(workload types.NamespacedName, namespace, reason string) {
	ended, ok := r.Updates[workload]
	if !ok {
		return
	}
	if ended.stalled {
		reason = failedStalled
	}
	delete(r.Updates, workload)
	r.metrics.failed.WithLabelValues(namespace, string(ended.mode), reason).Inc()
}

// superseded ends an update that another one follows. An update that had stalled counts as failed.
func (r *Reporter) superseded(workload types.NamespacedName, namespace string) {
	ended, ok := r.Updates[workload]
	switch {
	case !ok:
	case ended.stalled:
		r.failed(workload, namespace, failedStalled)
	default:
		delete(r.Updates, workload)
		r.metrics.superseded.WithLabelValues(namespace, string(ended.mode)).Inc()
	}
}

func (r *Reporter) event(regarding runtime.Object, kind, reason, note string) {
	if len(note) > longestNote {
		note = note[:longestNote-3] + "..."
	}
	r.recorder.Eventf(regarding, nil, kind, reason, "Update", "%s", note)
}

// news is what one reconcile of one workload has to report.
type news struct {
	*Reporter
	key       types.NamespacedName
	namespace string // for metrics
	rollout   engine.Rollout
	seen      *engine.Snapshot
	plan      steps.Plan
	writes    []write.Done
}

func (n news) current() *update { return n.Updates[n.key] }

// warnings are the events about workloads that are warnings.
var warnings = sets.New(EventStalled, EventWaits, EventHookTimedOut, EventFellBack, EventPullFailed, EventBypassed)

// tell records an event on the workload.
func (n news) tell(reason, note string) {
	kind := corev1.EventTypeNormal
	if warnings.Has(reason) {
		kind = corev1.EventTypeWarning
	}
	n.event(n.rollout.Workload(), kind, reason, note)
}

// once reports whether this is to be told now: it is something, and was not told of the update before.
func (u *update) once(what string) bool {
	if what == "" || u.told[what] {
		return false
	}
	u.told[what] = true
	return true
}

// begun notices an update whose update revision is marked. It is a new update if Stayput just wrote the mark, or if the
// update revision has changed. Otherwise another leader began it.
func (n news) begun() {
	updateRevision := n.updateRevision()
	if updateRevision == nil || !n.plan.Decision.Held {
		return
	}
	now, updating := n.updating(updateRevision)
	known := n.current()
	if !updating || known != nil && known.updateRevision == updateRevision.GetUID() {
		return
	}
	adopted := known == nil && !now
	n.superseded(n.key, n.namespace)
	n.Updates[n.key] = &update{updateRevision: updateRevision.GetUID(), mode: n.seen.Mode, started: n.seen.Now,
		told: map[string]bool{}, away: map[types.UID]time.Time{}}
	delete(n.recreates, n.key)
	if adopted {
		n.adopt(n.current())
		return
	}
	n.metrics.started.WithLabelValues(n.namespace, string(n.seen.Mode)).Inc()
	n.tell(EventStarted, fmt.Sprintf("Moving running pods to %s %s", n.kind.Revision.Name, updateRevision.GetName()))
}

// updateRevision returns the revision that all pods will have; nil as long as it has not been created.
func (n news) updateRevision() metav1.Object { return n.plan.Decision.UpdateRevision }

// updating reports whether the revision is marked, and whether it was marked just now.
func (n news) updating(revision metav1.Object) (now, updating bool) {
	for _, w := range n.writes {
		if w.After.GetUID() == revision.GetUID() && revisions.Updating(w.After) {
			return !revisions.Updating(revision), true
		}
	}
	return false, revisions.Updating(revision)
}

// adopt takes over an update as another leader has left it.
func (n news) adopt(known *update) {
	if started := n.plan.Progress.Started; !started.IsZero() {
		known.started = started
	}
	known.stalled = n.rollout.Overdue()
	known.told[EventNotPulled] = n.plan.NotPulled != ""
	known.told[EventNoDryRun] = n.plan.NoDryRun != ""
	known.told[EventBypassed] = n.plan.Bypassed != ""
	known.told[n.stage()] = true
}

// moves records an event on each pod that got new images, a new revision, or both, and that a pod went on without its hooks. It counts the
// pre-pull pods.
func (n news) moves() {
	for _, w := range n.writes {
		if write.CreatesPrePullPod(w.Step) {
			n.metrics.PrePullPods.WithLabelValues(n.namespace).Inc()
		}
		step, ok := w.Step.(steps.PatchPod)
		if !ok {
			continue
		}
		images := imageChanges(step.Pod, w.After.(*corev1.Pod))
		if step.Stops && step.TimedOut != "" {
			n.metrics.hooksTimedOut.WithLabelValues(n.namespace).Inc()
			n.tell(EventHookTimedOut, step.TimedOut)
		}
		if step.Asked != "" || step.Refuses != "" || step.Waits != "" {
			n.onRequest(step, images)
			continue
		}
		if step.Moves {
			n.metrics.moved.WithLabelValues(n.namespace).Inc()
		}
		if step.Moves || images != "" {
			n.event(step.Pod, corev1.EventTypeNormal, EventMoved, cmp.Or(images, step.Why))
		}
	}
}

// onRequest records on a pod that a container restarts as the pod's annotation asks, or why none does, or none yet.
func (n news) onRequest(step steps.PatchPod, images string) {
	switch {
	case step.Refuses != "":
		n.event(step.Pod, corev1.EventTypeWarning, EventRestartRefused, step.Refuses)
	case step.Waits != "":
		n.event(step.Pod, corev1.EventTypeNormal, EventRestartWaits, step.Waits)
	default:
		n.event(step.Pod, corev1.EventTypeNormal, EventRestarts, images)
	}
}

// imageChanges returns the containers whose image differs, as in "app: web:1 -> web:2".
func imageChanges(before, after *corev1.Pod) string {
	from := map[string]string{}
	for container := range edit.EachLiving(&before.Spec) {
		from[container.Name] = container.Image
	}
	var changes []string
	for container := range edit.EachLiving(&after.Spec) {
		if old := from[container.Name]; old != container.Image {
			changes = append(changes, fmt.Sprintf("%s: %s -> %s", container.Name, old, container.Image))
		}
	}
	return strings.Join(changes, ", ")
}

// preparations records once for each image that the image cannot be pulled, once that images are not pulled before
// containers stop, and once that it is unknown what admission makes of new pods.
func (n news) preparations(known *update) {
	if why := n.plan.NoDryRun; why != "" && known.once(EventNoDryRun) {
		n.tell(EventNoDryRun, "What admission changes in new pods is unknown: "+why)
	}
	if why := n.plan.NotPulled; why != "" && known.once(EventNotPulled) {
		n.tell(EventNotPulled, "No pre-pull pods, so containers stop before the new images are pulled: "+why)
	}
	for _, failure := range n.plan.PullFailures {
		if known.once(failure) {
			n.metrics.pullsFailed.WithLabelValues(n.namespace).Inc()
			n.tell(EventPullFailed, failure)
		}
	}
}

// absences measures for how long pods of an update are not Ready.
func (n news) absences(known *update) {
	for _, pod := range n.seen.Pods {
		ready := apps.IsTrue(pod, corev1.PodReady)
		since, away := known.away[pod.UID]
		switch {
		case !ready && !away && n.mayBeCause(pod):
			known.away[pod.UID] = n.seen.Now
		case ready && away:
			n.metrics.unavailable.WithLabelValues(n.namespace).Observe(n.seen.Now.Sub(since).Seconds())
			delete(known.away, pod.UID)
		}
	}
}

// mayBeCause reports whether Stayput may be the cause that a pod is not Ready.
func (n news) mayBeCause(pod *corev1.Pod) bool {
	return readiness.Out(pod) || pod.Annotations[inplace.AnnotationMove] != ""
}

// stages records, once for each value of the partition and each opening of the window, that the update waits for it. How many pods that are
// may change later, when the workload is scaled.
func (n news) stages(known *update) {
	if stage := n.stage(); known.once(stage) {
		reason, _, _ := strings.Cut(stage, " ")
		n.tell(reason, n.plan.Message)
	}
}

// stage returns what is told once of an update that waits at its partition or for its window, which begins with the event's reason; empty
// for another update.
func (n news) stage() string {
	switch partition := n.seen.Settings.Partition; n.plan.Phase {
	case steps.PhaseWindow:
		return EventWindow + " " + partition.Closed
	case steps.PhasePartition:
		return EventPartition + " " + partition.Value
	default:
		return ""
	}
}

// patience is how long pods may wait for the same before that is news. The disruption controller counts a pod that is Ready again a moment
// later, and others are over soon.
const patience = 10 * time.Second

// awaits notices what pods wait for, and records it once, when it has lasted. While a pod is in progress, no other workload holds up the
// update. If others have taken what the plan was to take, it waits as it did.
func (n news) awaits(known *update) {
	if n.plan.Overtaken {
		return
	}
	before := known.since
	known.refused, known.since, known.awaiting = false, map[string]time.Time{}, map[string]int{}
	for _, wait := range n.plan.Waits {
		told := wait.Filter + " " + wait.For
		known.awaiting[told]++
		if wait.Shared && n.plan.Progress.Moving > 0 {
			continue
		}
		known.since[told] = before[told]
		if known.since[told].IsZero() {
			known.since[told] = n.seen.Now
		}
		if n.seen.Now.Sub(known.since[told]) < patience {
			continue
		}
		known.refused = known.refused || wait.Filter == steps.FilterBudget
		if reason := waitedFor[wait.Filter]; reason != "" && known.once(told) {
			n.tell(reason, n.plan.Progress.String()+"; "+wait.String())
		}
	}
}

// waitedFor has the events of the filters for which pods wait, where users are told of that.
var waitedFor = map[string]string{
	steps.FilterBudget: EventAwaitsBudget, steps.FilterLimit: EventAwaitsLimit, steps.FilterHooks: EventAwaitsHook}

// waitsAgain is when it is told again that an update waits instead of falling back: events are kept for an hour, and it may wait for days.
const waitsAgain = 30 * time.Minute

// waits records why an update waits instead of falling back.
func (n news) waits(known *update) {
	obstacle := n.plan.Obstacle
	if !obstacle.Any() || known.waits == obstacle.Reason.Code && n.seen.Now.Sub(known.waitsTold) < waitsAgain {
		return
	}
	known.waits, known.waitsTold = obstacle.Reason.Code, n.seen.Now
	note := "The update waits"
	if !obstacle.Stalls {
		note += " " + n.seen.Settings.Partition.Where()
	}
	n.tell(EventWaits, note+"; "+obstacle.String())
}

// stalled notices when an update stalls and when it goes on. It records once that the update makes no progress, unless waits tells that.
func (n news) stalled(known *update) {
	stalled, waits := n.plan.Phase == steps.PhaseStalled, n.plan.Obstacle.Any()
	known.still = stalled || waits
	if !stalled || known.stalled {
		return
	}
	known.stalled = true
	if !waits {
		n.tell(EventStalled, n.plan.Message)
	}
}

// fellBack records that an update begun in place fell back.
func (n news) fellBack(known *update) {
	if !n.justFellBack() && !n.leftHalfWay(known) {
		return
	}
	reasons := n.plan.Decision.Reasons
	left := "Left to the " + n.kind.Workload.Name + " controller: "
	if keepRevision(reasons) {
		left = podsKeep
	}
	n.tell(EventFellBack, left+cmp.Or(n.plan.Message, reasons.String()))
	n.failed(n.key, n.namespace, firstCode(reasons, inplace.CodeFellBack))
	n.recreates[n.key] = known.updateRevision
}

// justFellBack reports whether one of the writes persisted a fallback, or removed the mark of an update that is left to the native
// controller for another reason: the namespace lost its label, or Stayput is uninstalled.
func (n news) justFellBack() bool {
	left := n.plan.Decision.Native()
	for _, w := range n.writes {
		_, persisted := w.Step.(steps.PersistFallback)
		if persisted || left && unmarks(w) {
			return true
		}
	}
	return false
}

// unmarks reports whether the write removed the mark of an update.
func unmarks(w write.Done) bool {
	return w.Before != nil && revisions.Started(w.Before.GetLabels()) && !revisions.Started(w.After.GetLabels())
}

// leftHalfWay reports whether the native controller makes the rest of this very update: an edit has changed what may be done in place.
func (n news) leftHalfWay(known *update) bool {
	updateRevision := n.updateRevision()
	return n.plan.Decision.Native() && updateRevision != nil && updateRevision.GetUID() == known.updateRevision
}

// podsKeep says what becomes of pods that no controller replaces.
const podsKeep = "Pods keep their revision: "

// keepRevision reports whether no controller replaces the pods.
func keepRevision(reasons inplace.Reasons) bool {
	return slices.Contains(reasons.Codes(), inplace.CodeOnDelete)
}

// recreation says what becomes of pods that are not updated in place, and why.
func recreation(reasons inplace.Reasons) string {
	if keepRevision(reasons) {
		return podsKeep + reasons.String()
	}
	return "Pods are recreated: " + reasons.String()
}

// recreated records why an edit is left to the native controller, while the new revision has no pods. Later it is no
// news, unless the reason is that a native rollout has begun, or an edit before it was made in place until now.
func (n news) recreated() {
	updateRevision, reasons := n.updateRevision(), n.plan.Decision.Reasons
	if updateRevision == nil && n.justFellBack() {
		n.tell(EventRecreated, recreation(reasons))
	}
	if updateRevision == nil || !n.plan.Decision.Native() || n.recreates[n.key] == updateRevision.GetUID() {
		return
	}
	begun := n.current() != nil
	n.failed(n.key, n.namespace, reasons[0].Code)
	n.recreates[n.key] = updateRevision.GetUID()
	isNews := begun || n.rollout.Fresh() || reasons[0].Code == inplace.CodeNativeRollout
	if isNews && n.seen.Mode.Manages() && reasons[0].Code != inplace.CodeFellBack {
		n.tell(EventRecreated, recreation(reasons))
	}
}

// completed records that the last pod has the update revision and is available, and that no mark of Stayput is left.
func (n news) completed() {
	known, updateRevision := n.current(), n.updateRevision()
	if known == nil || updateRevision == nil || updateRevision.GetUID() != known.updateRevision ||
		engine.Marked(n.rollout) || !n.rollout.Done() {
		return
	}
	took := n.seen.Now.Sub(known.started)
	n.metrics.completed.WithLabelValues(n.namespace, string(known.mode)).Inc()
	n.metrics.duration.WithLabelValues(n.namespace).Observe(took.Seconds())
	n.tell(EventCompleted, "Running pods were updated in place in "+took.Round(100*time.Millisecond).String())
	delete(n.Updates, n.key)
}

func firstCode(reasons inplace.Reasons, otherwise string) string {
	if len(reasons) == 0 {
		return otherwise
	}
	return reasons[0].Code
}
