package simulation

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

var (
	errHeld = errors.New("held")
	// errHeldForEvent has the cause after which the Deployment controller waits for the next event.
	errHeldForEvent = fmt.Errorf("%w until an event", errHeld)
	errNotFound     = errors.New("not found")
	errQuota        = errors.New("exceeded quota")
	// errRefused and errFailing are answers of the API server: a policy forbids a write of Stayput's, or a webhook is called for a write and
	// does not answer.
	errRefused = errors.New("forbidden")
	errFailing = errors.New("failed calling webhook")
)

// stored is an object of the model API server. Stored objects are never changed; writes store a changed copy.
type stored[T any] interface {
	comparable
	metav1.Object
	DeepCopy() T
}

// store is one resource of the model API server: the current objects, and all changes in order, which watches deliver.
type store[T stored[T]] struct {
	objects map[string]T
	log     []change[T]
}

type change[T any] struct {
	name     string
	old, new T
}

func newStore[T stored[T]]() *store[T] { return &store[T]{objects: map[string]T{}} }

// informer is a cache of a store. Each lags behind by its own delay.
type informer[T stored[T]] struct {
	store   *store[T]
	at      int
	objects map[string]T
}

func (s *store[T]) informer() *informer[T] {
	return &informer[T]{store: s, at: len(s.log), objects: maps.Clone(s.objects)}
}

// advance delivers up to n changes and returns them.
func (i *informer[T]) advance(n int) []change[T] {
	delivered := i.store.log[i.at:min(len(i.store.log), i.at+n)]
	for _, c := range delivered {
		var none T
		if c.new == none {
			delete(i.objects, c.name)
		} else {
			i.objects[c.name] = c.new
		}
	}
	i.at += len(delivered)
	return delivered
}

func (i *informer[T]) list() []T { return sorted(i.objects) }

func sorted[T any](objects map[string]T) []T {
	var list []T
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		list = append(list, objects[name])
	}
	return list
}

// world is the cluster: the API server and all its clients.
type world struct {
	t       testing.TB
	seed    int64
	rng     *rand.Rand
	dice    *rand.Rand // for partitions
	now     time.Time
	version int64
	// checkedAt is the version at which check was last made.
	checkedAt int64
	made      int
	// sized says that users edit CPU, too.
	sized bool
	// renews says that resizePolicy asks for a restart with other CPU.
	renews bool
	// foreign says that another client resizes pods.
	foreign bool
	trace   []string
	tracing bool
	failed  string

	deployments *store[*apps.Deployment]
	sets        *store[*apps.ReplicaSet]
	pods        *store[*corev1.Pod]
	slices      *store[*discoveryv1.EndpointSlice]
	// A world may have a PodDisruptionBudget: see model_disruption_test.go.
	budgets *store[*policyv1.PodDisruptionBudget]
	// A world may have a DaemonSet instead: see model_daemonset_test.go.
	daemonSets *store[*apps.DaemonSet]
	revisions  *store[*apps.ControllerRevision]

	deploymentController native
	replicaSetController native
	daemonSetController  native
	// hook answers the DaemonSet controller's writes.
	hook                 *daemonHook
	endpointsController  *endpointsController
	disruptionController native
	// A world may have another controller with a hook: see model_hooks_test.go.
	registrar *registrar
	kubelet   *kubelet
	stayput   *stayput

	mode     inplace.Mode
	settings inplace.Settings
	// unserved says that there is no Service.
	unserved bool
	// meshed says that the pods have a sidecar, noSetup that they have no other init container.
	meshed, noSetup bool
	// reads says that variables read labels and annotations: fixture.App.Reads.
	reads bool
	// claim is a claim of the pods that only one node can mount; empty if there is none.
	claim string
	// quota is how many pods there may be, room how many pods the nodes have capacity for.
	quota, room int
	// decision is the cached decision about the live objects at that version.
	decision     steps.Decision
	decisionAt   int64
	decisionMode inplace.Mode

	// unreachable says that the API server does not reach Stayput's webhooks. abandoned says that no manager runs that would answer: the
	// leader does not, nor does any other.
	unreachable, abandoned bool
	// unasked says that no webhook is asked about reports of kubelets, although Stayput's others are.
	unasked bool
	// closed says that a maintenance window is, refusing that admission refuses new pods.
	closed, refusing bool
	// answers are the errors with which the API server answers Stayput's writes, by resource.
	answers map[string]error
	// fallback is the fallback in Stayput's ConfigMap.
	fallback revisions.Fallback
	// heldSince is when a write of an update was first held, by its update revision, or by the template hash while there is no revision.
	heldSince map[string]time.Time

	// mirror says that admission gives all images another registry.
	mirror bool
	pull   fixture.PullModel
	// lags are those of Stayput, the Deployment controller and the ReplicaSet controller.
	lags  [3]lag
	rules invariants
}

func (w *world) logf(format string, args ...any) {
	if w.tracing {
		w.trace = append(w.trace, w.now.Format("04:05.000 ")+fmt.Sprintf(format, args...))
	}
}

// violated records the first violation, which ends the run.
func (w *world) violated(format string, args ...any) {
	if w.failed == "" {
		w.failed = fmt.Sprintf(format, args...)
		w.logf("VIOLATED: %s", w.failed)
	}
}

func put[T stored[T]](w *world, s *store[T], next T) T {
	w.version++
	next.SetResourceVersion(strconv.FormatInt(w.version, 10))
	old := s.objects[next.GetName()]
	s.objects[next.GetName()] = next
	s.log = append(s.log, change[T]{next.GetName(), old, next})
	return next
}

func remove[T stored[T]](w *world, s *store[T], name string) {
	var none T
	w.version++
	s.log = append(s.log, change[T]{name, s.objects[name], none})
	delete(s.objects, name)
}

// alter stores a changed copy. The version must be the stored one, unless it is empty.
func alter[T stored[T]](w *world, s *store[T], name, version string, change func(T)) (T, error) {
	current, found := s.objects[name]
	switch {
	case !found:
		return current, errNotFound
	case version != "" && version != current.GetResourceVersion():
		return current, fixture.ErrConflict
	}
	next := current.DeepCopy()
	change(next)
	return put(w, s, next), nil
}

func (w *world) deployment() *apps.Deployment { return w.deployments.objects["web"] }

// rollout returns the live objects.
func (w *world) rollout() deployments.Rollout {
	r := deployments.Rollout{
		Deployment:  w.deployment(),
		ReplicaSets: sorted(w.sets.objects),
		Seen: engine.Snapshot{Pods: sorted(w.pods.objects), Mode: w.mode, Settings: w.settings,
			Fallback: w.fallback, Rules: fixture.AllInPlace.For(w.deployment().Annotations), Now: w.now},
	}
	r.Seen.Settings.Partition = w.keeping(r.Deployment)
	w.pull.Observe(&r.Seen.Settings, &r.Seen.Nodes, &r.Seen.Pull)
	r.Seen.DryRun = w.dryRun(r.UpdateRevision())
	return r
}

// held reports whether the webhooks hold the update, after live reads.
func (w *world) held() bool {
	if w.decisionAt != w.version || w.decisionMode != w.mode {
		w.decision, w.decisionAt, w.decisionMode = w.rollout().Decision(), w.version, w.mode
	}
	newRS, _ := w.decision.UpdateRevision.(*apps.ReplicaSet)
	return w.holdAlive() && w.decision.Held && w.lasts(revisions.HeldBy(newRS, sorted(w.sets.objects), w.now))
}

// holdAlive reports whether the API server reaches the webhooks, and a leader runs.
func (w *world) holdAlive() bool {
	return w.managerAnswers() && w.now.Before(w.stayput.lease)
}

// managerAnswers reports whether a manager answers the API server's calls of webhooks.
func (w *world) managerAnswers() bool { return !w.unreachable && !w.abandoned }

// lasts reports whether the leader renews the hold of the update.
func (w *world) lasts(newRS *apps.ReplicaSet) bool {
	if newRS == nil {
		return revisions.HoldLasts(nil, w.firstHeld(w.rollout().TemplateHash()), w.now)
	}
	return revisions.HoldLasts(newRS.Labels, w.holdStart(newRS), w.now)
}

// holdStart returns since when writes of the update to that revision have been held; now if the leader has begun it, which is then
// forgotten.
func (w *world) holdStart(revision metav1.Object) time.Time {
	update := revision.GetName() + " " + revisions.RevisionNumber(revision)
	if revisions.Started(revision.GetLabels()) {
		delete(w.heldSince, update)
		return w.now
	}
	return w.firstHeld(update)
}

// firstHeld returns since when writes of that update have been held.
func (w *world) firstHeld(update string) time.Time {
	if w.heldSince[update].IsZero() || w.now.Sub(w.heldSince[update]) > 10*time.Minute {
		w.heldSince[update] = w.now
	}
	return w.heldSince[update]
}

// heldFor decides about a new ReplicaSet by its own template, because the Deployment controller may create it from an old cache.
func (w *world) heldFor(rs *apps.ReplicaSet) bool {
	r := w.rollout()
	r.Deployment = r.Deployment.DeepCopy()
	r.Deployment.Spec.Template = rs.Spec.Template
	return w.holdAlive() && r.Decision().Held
}

// updateReplicaSet is an UPDATE by the Deployment controller. It passes Stayput's webhook.
func (w *world) updateReplicaSet(read *apps.ReplicaSet, change func(*apps.ReplicaSet)) (*apps.ReplicaSet, error) {
	next := read.DeepCopy()
	change(next)
	return w.putReplicaSet(read, next)
}

// putReplicaSet stores that ReplicaSet, which was read before.
func (w *world) putReplicaSet(read, next *apps.ReplicaSet) (*apps.ReplicaSet, error) {
	if apps.Replicas(next) != apps.Replicas(read) && w.held() {
		w.logf("denied: %s replicas %d → %d", read.Name, apps.Replicas(read), apps.Replicas(next))
		if r := w.rollout(); slices.ContainsFunc(r.ReplicaSets, deployments.EventToCome) && r.BegunLately() { // webhook/replicaset.go
			return nil, errHeldForEvent
		}
		return nil, errHeld
	}
	if apps.Replicas(next) != apps.Replicas(read) {
		w.rules.nativeScaled(w)
		w.logf("native: %s replicas %d → %d", read.Name, apps.Replicas(read), apps.Replicas(next))
	}
	return alter(w, w.sets, read.Name, read.ResourceVersion, func(rs *apps.ReplicaSet) {
		if apps.Replicas(next) != apps.Replicas(rs) {
			delete(w.stayput.scaled, rs.Name)
			next.Generation++
		}
		*rs = *next
	})
}

// putStatus is an UPDATE of status and annotations by the Deployment controller. A status that announces completion is denied until the
// update is complete.
func (w *world) putStatus(next *apps.Deployment) error {
	if deployments.LooksComplete(w.rollout().Deployment, next.Status) && w.held() {
		w.logf("denied: status says done")
		return fixture.ErrConflict
	}
	if next.ResourceVersion == w.deployment().ResourceVersion {
		w.rules.statusWritten(w, next)
	}
	_, err := alter(w, w.deployments, next.Name, next.ResourceVersion, func(d *apps.Deployment) {
		d.Status, d.Annotations = *next.Status.DeepCopy(), maps.Clone(next.Annotations)
	})
	return err
}

// stamp returns the time as it is stored: without fractions of seconds.
func (w *world) stamp() metav1.Time { return metav1.NewTime(w.now.Truncate(time.Second)) }

// createReplicaSet is a CREATE. The webhook sets replicas to 0 if the update is held.
func (w *world) createReplicaSet(rs *apps.ReplicaSet) error {
	if _, exists := w.sets.objects[rs.Name]; exists {
		return fixture.ErrConflict
	}
	rs.UID, rs.Generation = types.UID("uid-"+rs.Name), 1
	rs.CreationTimestamp = w.stamp()
	if w.heldFor(rs) {
		rs.Spec.Replicas = new(int32)
	}
	w.logf("created %s with %d replicas", rs.Name, apps.Replicas(rs))
	put(w, w.sets, rs)
	return nil
}

// createPod is a CREATE by the ReplicaSet controller.
func (w *world) createPod(rs *apps.ReplicaSet) error {
	pod := &corev1.Pod{ObjectMeta: rs.Spec.Template.Typed().ObjectMeta, Spec: rs.Spec.Template.Typed().Spec}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(rs, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	return w.postPod(rs, pod)
}

// postPod stores a pod of the ReplicaSet. Stayput's webhook denies pods beyond the replicas of the ReplicaSet.
func (w *world) postPod(rs *apps.ReplicaSet, pod *corev1.Pod) error {
	if stored := w.sets.objects[rs.Name]; stored != nil && w.markHolds(stored) && deployments.Full(stored, w.livingOf(stored)) {
		w.logf("denied: create a pod of %s", rs.Name)
		return errHeld
	}
	if len(w.pods.objects) >= w.quota {
		return errQuota
	}
	w.made++
	name := fmt.Sprintf("%s-%03d", rs.Name, w.made)
	pod.Name, pod.UID, pod.Generation, pod.Spec = name, types.UID(name), 1, w.admit(pod.Spec)
	pod.CreationTimestamp = w.stamp()
	pod.Status.Phase = corev1.PodPending
	w.schedule(pod)
	w.rules.podCreated(w, rs)
	w.logf("%s created", name)
	put(w, w.pods, pod)
	return nil
}

// answering reports whether a webhook of Stayput is asked about a kubelet's report, and answers.
func (w *world) answering() bool {
	return w.managerAnswers() && !w.unasked && w.mode.Manages()
}

// mutate is what Stayput's webhook does to a kubelet's write of pods/status.
func (w *world) mutate(old, sent *corev1.Pod) {
	if !w.answering() {
		return
	}
	if ready := readiness.StoredReady(old, sent, w.now); ready != nil {
		stored := *ready
		stored.LastTransitionTime.Time = stored.LastTransitionTime.Truncate(time.Second)
		sent.Status.Conditions = readiness.WithCondition(sent.Status.Conditions, stored)
	}
}

// admitted returns the spec that admission makes for a new pod.
func (w *world) admitted(template apps.Template) corev1.PodSpec {
	return w.admit(template.Typed().Spec)
}

func (w *world) admit(spec corev1.PodSpec) corev1.PodSpec {
	for _, list := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range list {
			if w.mirror {
				list[i].Image = "mirror/" + list[i].Image
			}
		}
	}
	spec.Tolerations = withDefaultTolerations(spec.Tolerations)
	return spec
}

// withDefaultTolerations is Admit in plugin/pkg/admission/defaulttolerationseconds.
func withDefaultTolerations(tolerations []corev1.Toleration) []corev1.Toleration {
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if !slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool { return t.Key == taint || t.Key == "" }) {
			tolerations = append(tolerations, corev1.Toleration{Key: taint, Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))})
		}
	}
	return tolerations
}

// dryRun returns the answer of the API server at once.
func (w *world) dryRun(newRS *apps.ReplicaSet) dryrun.Result {
	if newRS == nil {
		return dryrun.Result{}
	}
	if w.refusing {
		return dryrun.Result{UpdateRevision: newRS.UID, Refused: "no"}
	}
	return dryrun.Result{UpdateRevision: newRS.UID, Pod: w.newPod(newRS.Spec.Template), Claim: w.claim}
}

// keeping returns the partition of the Deployment.
func (w *world) keeping(d *apps.Deployment) inplace.Partition {
	partition := inplace.PartitionOf(d.Annotations)
	if w.closed {
		partition.Closed = "the maintenance window"
	}
	return partition
}

// newPod returns a new pod of the template.
func (w *world) newPod(template apps.Template) *corev1.Pod {
	pod := fixture.Made(template)
	pod.Spec = w.admitted(template)
	return pod
}

// planned returns the plan with the answers to the dry runs that it asks for.
func (w *world) planned(r *deployments.Rollout) steps.Plan {
	plan := r.Plan()
	if r.Seen.OldDryRun = w.own(plan.DryRun); r.Seen.OldDryRun.UpdateRevision != "" {
		plan = r.Plan()
	}
	return plan
}

// own returns the answer for the old revision, if pods go back to it and the plan asked for that.
func (w *world) own(asked *steps.DryRun) dryrun.Result {
	if asked == nil || !asked.Back {
		return dryrun.Result{}
	}
	at := slices.IndexFunc(sorted(w.sets.objects), func(rs *apps.ReplicaSet) bool { return rs.UID == asked.UpdateRevision })
	if at < 0 {
		return dryrun.Result{}
	}
	return w.dryRun(sorted(w.sets.objects)[at])
}

// surges reports whether an update may surge, and does so where nodes have capacity.
func (w *world) surges() bool {
	return w.rollout().MaySurge() && (w.claim == "" || apps.ExplicitZero(w.deployment()))
}

const plenty = 100

// schedule gives the pod a node if one has capacity.
func (w *world) schedule(pod *corev1.Pod) {
	if w.roomy() {
		pod.Spec.NodeName = "node"
		if scheduled := apps.Condition(pod, corev1.PodScheduled); scheduled != nil {
			scheduled.Status, scheduled.Reason = corev1.ConditionTrue, ""
		}
		w.pull.Place(pod, 3)
	}
}

// unschedulable sets the condition that no node has capacity.
func (w *world) unschedulable(pod *corev1.Pod) {
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.NewTime(w.now), Message: "no node has room"})
}

func (w *world) roomy() bool { return w.placed() < w.room }

func (w *world) placed() int {
	placed := 0
	for _, pod := range w.pods.objects {
		if pod.Spec.NodeName != "" {
			placed++
		}
	}
	return placed
}

// deletePod is a DELETE by the ReplicaSet controller. It is held while its ReplicaSet is marked as updating.
func (w *world) deletePod(name string) error {
	pod, found := w.pods.objects[name]
	switch {
	case !found:
		return errNotFound
	case pod.DeletionTimestamp != nil:
		return nil
	}
	owner := w.sets.objects[metav1.GetControllerOf(pod).Name]
	if owner != nil && !deployments.MayBeDeleted(pod) && w.markHolds(owner) {
		w.logf("denied: delete %s", name)
		return errNotFound
	}
	if w.mode.Manages() && !w.managerAnswers() && runsMoved(pod) {
		w.logf("denied: delete %s, which has just moved, and no manager answers", name)
		return errFailing
	}
	w.rules.podDeleted(w, pod)
	return w.terminate(name)
}

// runsMoved is the match condition of moved-pods.stayput.dev, which fails closed.
func runsMoved(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
		return status.State.Running != nil && status.ContainerID != "" &&
			strings.Contains(pod.Annotations[inplace.AnnotationMove], status.ContainerID)
	})
}

// markHolds reports whether the webhooks hold deletions because of the mark.
func (w *world) markHolds(rs *apps.ReplicaSet) bool {
	return revisions.Updating(rs) && w.holdAlive() && w.mode.Manages() && w.lasts(rs) && w.fallback == (revisions.Fallback{})
}

func (w *world) terminate(name string) error {
	w.logf("%s deleted", name)
	_, err := alter(w, w.pods, name, "", func(pod *corev1.Pod) {
		pod.DeletionTimestamp = &metav1.Time{Time: w.now}
	})
	return err
}

// carryOut does one of Stayput's steps. It applies the patches to JSON, as the API server does.
func (w *world) carryOut(step steps.Step) error {
	if err := w.answers[resourceOf(step)]; err != nil {
		return err
	}
	if err := w.policy(step); err != nil {
		return err
	}
	switch s := step.(type) {
	case steps.PersistFallback:
		w.version++
		w.fallback = s.Fallback
		return nil
	case steps.ForgetFallback:
		w.version++
		w.fallback = revisions.Fallback{}
		return nil
	case steps.CreateReplicaSet:
		rs := &apps.ReplicaSet{}
		if err := json.Unmarshal(s.Object, rs); err != nil {
			return err
		}
		return w.createReplicaSet(rs)
	case steps.PatchReplicaSet:
		err := patch(w, w.sets, s.ReplicaSet.Name, s.Operations, func(before, after *apps.ReplicaSet) bool {
			w.stayput.scaled[before.Name] = w.stayput.scaled[before.Name] || apps.Replicas(before) != apps.Replicas(after)
			return apps.Replicas(before) != apps.Replicas(after)
		})
		w.rules.outdated(w, s, err)
		w.rules.ended(w, s, err)
		return err
	case steps.PatchRevision:
		return patch(w, w.revisions, s.Revision.Name, s.Operations, func(_, _ *apps.ControllerRevision) bool { return false })
	case steps.PatchStatus:
		if s.Deployment.ResourceVersion == w.deployment().ResourceVersion {
			next := w.deployment().DeepCopy()
			next.Status = s.Status
			w.rules.statusWritten(w, next)
		}
		return patch(w, w.deployments, s.Deployment.Name, s.Operations, func(_, _ *apps.Deployment) bool { return false })
	case steps.CreatePrePullPod:
		w.version++
		return w.pull.Create(s)
	case steps.DeletePrePullPod:
		w.version++
		w.pull.Delete(s)
		return nil
	case steps.SetReady:
		w.rules.disrupts(w, s)
		w.rules.readyWritten(w, s)
		return patch(w, w.pods, s.Pod.Name, s.Operations, func(before, after *corev1.Pod) bool {
			w.rules.readySet(w, before.Name, after)
			return false
		})
	case steps.PatchPod:
		w.rules.disrupts(w, s)
		w.rules.podPatched(w, s)
		return patch(w, w.pods, s.Pod.Name, s.Operations, func(before, after *corev1.Pod) bool {
			if bySubresource := fixture.Sizes(before) != fixture.Sizes(after); bySubresource != s.Resizes {
				w.violated("%s has %s and gets %s, by the subresource: %v", before.Name, fixture.Sizes(before), fixture.Sizes(after), s.Resizes)
			}
			if len(edit.Missing(after.Spec.Tolerations, before.Spec.Tolerations)) > 0 {
				w.violated("tolerations are taken from %s, which the API server refuses", before.Name)
			}
			return fixture.Images(before) != fixture.Images(after) || fixture.Sizes(before) != fixture.Sizes(after) ||
				len(after.Spec.Tolerations) != len(before.Spec.Tolerations)
		})
	}
	return fmt.Errorf("unknown step %T", step)
}

// resourceOf returns the resource that a step writes to; empty for one whose writes are never refused.
func resourceOf(step steps.Step) string {
	switch step.(type) {
	case steps.CreateReplicaSet, steps.PatchReplicaSet:
		return "replicasets"
	case steps.PatchRevision:
		return "controllerrevisions"
	case steps.PatchPod:
		return "pods"
	case steps.SetReady:
		return "pods/status"
	case steps.PatchStatus:
		return "deployments/status"
	}
	return ""
}

func sameImages(a, b string) bool { return fixture.Plain.Replace(a) == fixture.Plain.Replace(b) }

func patch[T stored[T]](w *world, s *store[T], name string, operations []jsonpatch.Operation,
	specChanged func(before, after T) bool) error {
	current, found := s.objects[name]
	if !found {
		return errNotFound
	}
	guard, operations := fixture.GuardOf(operations)
	if !guard.Holds(current) {
		return fixture.ErrConflict
	}
	next := current.DeepCopy()
	if err := fixture.Apply(next, operations); err != nil {
		w.violated("%s does not apply: %v", name, err)
		return err
	}
	if len(next.GetAnnotations()) == 0 {
		next.SetAnnotations(nil) // as watches send it
	}
	if specChanged(current, next) {
		next.SetGeneration(current.GetGeneration() + 1)
	}
	put(w, s, next)
	return nil
}
