package simulation

import (
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
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
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// stayput is Stayput's leader. It plans on caches that lag, and carries out its steps one by one while all other processes go on.
type stayput struct {
	*world
	deployments *informer[*apps.Deployment]
	sets        *informer[*apps.ReplicaSet]
	pods        *informer[*corev1.Pod]
	slices      *informer[*discoveryv1.EndpointSlice]
	daemonSets  *informer[*apps.DaemonSet]
	revisions   *informer[*apps.ControllerRevision]
	// remembered is what the leader remembers, but for the versions of its writes: see wrote.
	remembered engine.Memory
	queue      []steps.Step
	queuedIn   inplace.Mode
	// wrote are the versions of its last writes, by resource. A plan waits until the caches have them.
	wrote [4]int
	// scaled are the ReplicaSets whose replicas Stayput wrote last.
	scaled map[string]bool
	stale  bool
	due    time.Time
	// plannedOn is the rollout for which the steps in the queue were planned.
	plannedOn interface {
		FallBack(why inplace.Reason) steps.Plan
		Snapshot() *engine.Snapshot
	}
	failed bool
	// budgets has PodDisruptionBudgets, taken the pods that were taken out of service since the last plan.
	budgets *informer[*policyv1.PodDisruptionBudget]
	taken   map[types.UID]bool
	// lease is until when the webhooks hold. running says that the process lives, gone that it never comes back.
	lease         time.Time
	running, gone bool
}

func newStayput(w *world) *stayput {
	return &stayput{world: w, deployments: w.deployments.informer(), sets: w.sets.informer(), pods: w.pods.informer(),
		slices:     w.slices.informer(),
		daemonSets: w.daemonSets.informer(), revisions: w.revisions.informer(), budgets: w.budgets.informer(),
		stale: true, running: true, scaled: map[string]bool{}}
}

// leaseDuration is inplace.LeaderPatience.
const leaseDuration = time.Minute

func (s *stayput) deliver(watch, n int) {
	events := 0
	switch watch {
	case 0:
		events = len(s.deployments.advance(n))
	case 1:
		events = len(s.sets.advance(n))
	case 2:
		events = len(s.pods.advance(n))
	case 3:
		events = len(s.slices.advance(n))
	case 4:
		events = len(s.daemonSets.advance(n))
	case 5:
		events = len(s.revisions.advance(n))
	}
	s.stale = s.stale || events > 0
}

func (s *stayput) run() {
	if !s.running {
		return
	}
	s.lease = s.now.Add(leaseDuration)
	if len(s.queue) > 0 {
		step := s.queue[0]
		s.queue = s.queue[1:]
		if !s.allowed(step) {
			s.stale = true
		} else if err := s.carryOut(step); err != nil {
			s.logf("stayput: %s: %v", step.Describe(), err)
			s.stale = true
			s.stumble(err)
		} else {
			s.logf("stayput: %s", step.Describe())
			s.remembered.Made(step, s.now)
			s.rememberWrite(step)
		}
		if len(s.queue) == 0 && !s.failed {
			s.remembered.Succeeded()
		}
		return
	}
	if !s.readsItsWrites() || !s.stale && (s.due.IsZero() || s.now.Before(s.due)) {
		return
	}
	s.stale, s.due = false, time.Time{}
	s.queuedIn, s.failed, s.taken = s.mode, false, map[types.UID]bool{}
	plan := s.plan()
	s.remembered.Planned(plan, s.now)
	s.queue = s.confirmed(plan.Steps)
	if plan.After > 0 {
		s.due = s.now.Add(plan.After)
	}
}

// plan returns the next plan for the workload.
func (s *stayput) plan() steps.Plan {
	if len(s.world.daemonSets.objects) > 0 {
		return s.daemonPlan()
	}
	r := deployments.Rollout{
		Deployment:  s.deployments.objects["web"],
		ReplicaSets: s.sets.list(),
		Seen: engine.Snapshot{Pods: s.pods.list(), Mode: s.mode, Settings: s.settings, Endpoints: s.endpoints(),
			Fallback: s.fallback, Now: s.now},
	}
	r.Seen.Settings.Partition = s.keeping(r.Deployment)
	r.Seen.Rules = fixture.AllInPlace.For(r.Deployment.Annotations)
	s.pull.Observe(&r.Seen.Settings, &r.Seen.Nodes, &r.Seen.Pull)
	s.remembered.Observe(r.Seen.Pods, s.now)
	r.Seen.TakenOut, r.Seen.Batches = s.remembered.TakenOut, s.remembered.Batches
	r.Seen.Disruption = s.disruption(s.budgets.list())
	r.Seen.DryRun = s.dryRun(r.UpdateRevision())
	if known := s.remembered.NewPods(r.Seen.Settings.Partition, s.now); known.UpdateRevision == r.Seen.DryRun.UpdateRevision {
		r.Seen.DryRun.Impossible = known.Impossible
	}
	plan := s.planned(&r)
	s.addsUp(plan)
	s.stopsForNothing(plan)
	s.respectsPartition(r, plan)
	s.rules.late = s.rules.late || s.rules.paused && slices.ContainsFunc(plan.Decision.Reasons, func(reason inplace.Reason) bool {
		return reason.Code == inplace.CodeNotResized
	})
	if s.plannedOn = &r; !plan.Decision.Held {
		s.plannedOn = nil
	}
	return plan
}

// stumble is what the leader does about a step that fails. The update falls back at once if the step is refused, and after two minutes if
// it fails for an unknown reason.
func (s *stayput) stumble(err error) {
	why := inplace.Reason{Code: inplace.CodeRefused, Message: err.Error()}
	switch {
	case errors.Is(err, errRefused):
	case errors.Is(err, errFailing):
		s.failed = true
		if !s.remembered.Failed(s.now) {
			return
		}
		why.Code = inplace.CodeFailing
	default:
		return
	}
	if s.plannedOn != nil {
		plan := s.plannedOn.FallBack(why)
		s.queue = append(s.queue, plan.Steps...)
		s.plannedOn = nil
		if plan.Decision.Held {
			s.remembered.Waits(plan, s.now)
			return
		}
		s.rules.fellBack = true
	}
}

// readsItsWrites reports whether all caches have Stayput's writes. Each write is guarded by the version of its own object only, and a plan
// depends on several.
func (s *stayput) readsItsWrites() bool {
	return s.deployments.at >= s.wrote[0] && s.sets.at >= s.wrote[1] && s.pods.at >= s.wrote[2] && s.revisions.at >= s.wrote[3]
}

func (s *stayput) rememberWrite(step steps.Step) {
	switch step.(type) {
	case steps.PatchStatus:
		s.wrote[0] = len(s.world.deployments.log)
	case steps.PatchReplicaSet, steps.CreateReplicaSet:
		s.wrote[1] = len(s.world.sets.log)
	case steps.PatchRevision:
		s.wrote[3] = len(s.world.revisions.log)
	default:
		s.wrote[2] = len(s.world.pods.log)
	}
	if pod := s.world.pods.objects[podOf(step)]; pod != nil && s.plannedOn != nil {
		s.plannedOn.Snapshot().Wrote(map[types.UID]*corev1.Pod{pod.UID: pod})
	}
}

// podOf returns the pod that the step writes to; empty if it writes to none.
func podOf(step steps.Step) string {
	switch s := step.(type) {
	case steps.PatchPod:
		return s.Pod.Name
	case steps.SetReady:
		return s.Pod.Name
	}
	return ""
}

// invariants checks every write.
type invariants struct {
	// loose says that pods may be created and deleted: the user scaled, the update was native for a while, or Stayput died.
	loose bool
	// native says that the Deployment controller has scaled, maybe while surge pods were removed.
	native bool
	// belated says that a native controller acted on an older cache when nothing was held: nothing was to be updated, or the Deployment
	// controller had not created the new ReplicaSet within a minute.
	belated bool
	// disturbed says that pods failed or that another client deleted some. deleted is the latter only: one may have been replaced once too
	// often.
	disturbed, deleted bool
	// surprised says that a pod failed, or went, of which no cache knew yet.
	surprised bool
	// originals are the pods before the first surge pod. mayBeUnavailable says that there was no room for surge, so one pod may be
	// unavailable.
	originals        []*corev1.Pod
	mayBeUnavailable bool
	// out are the pods that served until Stayput took them out of service.
	out map[string]bool
	// gone is since when pods are out of the slice. last are the pods that were the last endpoint when they were patched.
	gone map[string]time.Time
	last map[string]bool
	// flapped are the pods that their kubelets put back into service before they were patched, or while no webhook answered.
	flapped map[string]bool
	// fellBack says that pods come back into service whatever containers run.
	fellBack bool
	// paused says that there was a pause, in which a kubelet may take longer for a resize than the deadline. late says that one did.
	paused, late bool
	// listed are all containers that were ever listed as auxiliary.
	listed inplace.Auxiliary
}

// statusWritten checks a status. Clients take an update for complete as soon as the status says so:
// kubectl/pkg/polymorphichelpers/rollout_status.go.
func (j *invariants) statusWritten(w *world, d *apps.Deployment) {
	status := d.Status
	if j.loose || j.disturbed || !deployments.LooksComplete(w.rollout().Deployment, status) || !w.held() {
		return
	}
	r := w.rollout()
	for _, pod := range r.Seen.Pods {
		isSurgePod := pod.Annotations[inplace.AnnotationSurgePod] != ""
		if readiness.Live(pod) && !isSurgePod && !w.kubelet.sized(pod) {
			w.violated("success was reported before %s was resized", pod.Name)
		}
		if readiness.Live(pod) && !isSurgePod && (!metav1.IsControlledBy(pod, r.UpdateRevision()) || !apps.IsTrue(pod, corev1.PodReady) ||
			readiness.Out(pod) || len(w.dated(pod)) > 0) {
			w.violated("success was reported before %s was done: %+v", pod.Name, status)
		}
	}
}

// outdated demands that no patch of a ReplicaSet fails because its controller has updated the status meanwhile, as it does after each pod
// that moves.
func (j *invariants) outdated(w *world, s steps.PatchReplicaSet, err error) {
	current := w.sets.objects[s.ReplicaSet.Name]
	if current == nil || !errors.Is(err, fixture.ErrConflict) {
		return
	}
	as := current.DeepCopy()
	as.Status, as.ResourceVersion = s.ReplicaSet.Status, s.ReplicaSet.ResourceVersion
	if equality.Semantic.DeepEqual(as, s.ReplicaSet) {
		w.violated("%s of %s is refused, although only its status has changed", s.Why, s.ReplicaSet.Name)
	}
}

// ended demands that an update does not end while the Deployment controller counts a pod as available that is not: it knows pods only from
// the statuses of ReplicaSets, and would report a complete rollout.
func (j *invariants) ended(w *world, s steps.PatchReplicaSet, err error) {
	now := w.sets.objects[s.ReplicaSet.Name]
	if err != nil || j.loose || j.disturbed || j.fellBack || s.ReplicaSet.Labels[inplace.LabelUpdating] == "" ||
		now.Labels[inplace.LabelUpdating] != "" || deployments.Overdue(w.deployment()) {
		return
	}
	available := w.livingThat(func(pod *corev1.Pod) bool {
		available, _ := readiness.AvailableAt(pod, now.Spec.MinReadySeconds, w.now)
		return metav1.IsControlledBy(pod, now) && available
	})
	if int(now.Status.AvailableReplicas) > available && now.Status.AvailableReplicas >= apps.Desired(w.deployment()) {
		w.violated("the update ended when the status of %s counted %d available pods of %d", now.Name, now.Status.AvailableReplicas, available)
	}
}

func (j *invariants) podCreated(w *world, rs *apps.ReplicaSet) {
	allowed := apps.Desired(w.deployment())
	j.belated = j.belated || w.living() >= int(allowed) && w.isDone()
	if w.surges() {
		allowed += w.deployment().MaxSurge()
	}
	if !j.loose && !j.deleted && w.held() && w.living() >= int(allowed) {
		w.violated("a pod of %s was created while held", rs.Name)
	}
}

func (j *invariants) podDeleted(w *world, pod *corev1.Pod) {
	j.belated = j.belated || w.isDone()
	if !j.loose && !j.deleted && w.held() && !deployments.MayBeDeleted(pod) && (j.original(pod) || apps.IsTrue(pod, corev1.PodReady)) {
		w.violated("%s was deleted while held", pod.Name)
	}
	if readiness.Removing(pod) && w.settings.Surge == inplace.SurgeReplace {
		j.originals = slices.DeleteFunc(slices.Clone(j.originals), func(original *corev1.Pod) bool { return original.Name == pod.Name })
	}
	if readiness.Removing(pod) && apps.IsTrue(pod, corev1.PodReady) && !j.native && !j.loose {
		w.violated("surge pod %s was removed while it served", pod.Name)
	}
}

func (j *invariants) original(pod *corev1.Pod) bool {
	return slices.ContainsFunc(j.originals, func(original *corev1.Pod) bool { return original.Name == pod.Name })
}

// nativeScaled checks a write of replicas that was not held. The Deployment controller may act on an old cache after an edit and its undo,
// when nothing is left to update, or when it does not see the new template for a minute.
func (j *invariants) nativeScaled(w *world) {
	r := w.rollout()
	if reasons := r.Decision().Reasons; !j.loose && !j.late && len(reasons) > 0 {
		w.violated("native for no reason: %s", reasons)
	}
	j.loose, j.native, j.belated = true, true, j.belated || w.isDone() || r.UpdateRevision() == nil
}

// isDone reports whether nothing is to be updated.
func (w *world) isDone() bool {
	decision := w.rollout().Decision()
	return !decision.Held && !decision.Native()
}

func (w *world) living() int { return w.livingThat(func(*corev1.Pod) bool { return true }) }

// livingOf counts the pods that the ReplicaSet controls.
func (w *world) livingOf(rs *apps.ReplicaSet) int {
	return w.livingThat(func(pod *corev1.Pod) bool { return metav1.IsControlledBy(pod, rs) })
}

func (w *world) livingThat(which func(*corev1.Pod) bool) int {
	living := 0
	for _, pod := range w.pods.objects {
		if readiness.Live(pod) && which(pod) {
			living++
		}
	}
	return living
}

// readyWritten checks a Ready that the leader writes.
func (j *invariants) readyWritten(w *world, s steps.SetReady) {
	current := w.pods.objects[s.Pod.Name]
	switch {
	case current == nil || current.ResourceVersion != s.Pod.ResourceVersion:
	case s.Out:
		delete(j.flapped, current.Name)
		j.serveOn(w, current)
		j.taken(w, current)
	case readiness.Out(current):
		j.cameBack(w, current)
	}
}

// reported checks a kubelet's report.
func (j *invariants) reported(w *world, before, stored *corev1.Pod) {
	if readiness.Out(before) && !readiness.Out(stored) {
		patched := readiness.MoveOf(before).PatchedSinceOut(before)
		if j.flapped[stored.Name] = !patched || !w.answering(); patched && w.answering() {
			j.cameBack(w, stored)
		}
	}
	j.readySet(w, stored.Name, stored)
}

func (j *invariants) podPatched(w *world, s steps.PatchPod) {
	current := w.pods.objects[s.Pod.Name]
	if current == nil || current.ResourceVersion != s.Pod.ResourceVersion {
		return
	}
	restarting := restarting(s)
	awaited := slices.ContainsFunc(restarting, func(name string) bool { return !j.listed.Has(name) })
	serves := apps.IsTrue(current, corev1.PodReady)
	mayServe := j.last[current.Name] || j.flapped[current.Name] || readiness.MoveOf(current).PartiallyPatched()
	switch {
	case len(restarting) == 0:
	case serves && (awaited && !mayServe || s.Moves):
		w.violated("%s was patched while it serves", current.Name)
	case s.Drained:
		j.hookKept(w, s)
		j.stopping(w, current)
	default:
		j.taken(w, current)
	}
}

// restarting returns the containers that restart for the patch.
func restarting(s steps.PatchPod) []string {
	var names []string
	for list, containers := range map[string][]corev1.Container{"containers": s.Pod.Spec.Containers,
		"initContainers": s.Pod.Spec.InitContainers} {
		for i, container := range containers {
			image, cpu := fmt.Sprintf("/spec/%s/%d/image", list, i), fmt.Sprintf("/spec/%s/%d/resources/requests/cpu", list, i)
			if slices.ContainsFunc(s.Operations, func(o jsonpatch.Operation) bool {
				return o.Path == image || o.Path == cpu && len(container.ResizePolicy) > 0
			}) {
				names = append(names, container.Name)
			}
		}
	}
	return names
}

// taken counts a pod that is taken out of service. A pod too many, which came in place of a deleted one, is removed beside the others.
func (j *invariants) taken(w *world, pod *corev1.Pod) {
	if !apps.IsTrue(pod, corev1.PodReady) || readiness.Removing(pod) && j.deleted {
		return
	}
	j.out[pod.Name] = true
	for name := range j.out {
		if pod := w.pods.objects[name]; pod == nil || !readiness.Live(pod) {
			delete(j.out, name)
		}
	}
	if allowed := w.mayBeOut(); !j.loose && len(j.out) > allowed {
		w.violated("%v are out of service at once, %d allowed", slices.Sorted(maps.Keys(j.out)), allowed)
	}
}

// mayBeOut returns how many pods may be out of service at a time. With surge, surge pods serve in their place.
func (w *world) mayBeOut() int {
	if d := w.daemonSet(); d != nil {
		return max(1, d.MaxUnavailable(len(w.pull.Nodes)))
	}
	out := w.deployment().MaxUnavailable()
	if w.surges() {
		out += w.deployment().MaxSurge()
	}
	return max(1, int(out))
}

// readySet demands that no pod is Ready with the new identity while an old container runs, as long as a webhook answers. A pod that was
// patched while it served has its old identity until its containers have restarted.
func (j *invariants) readySet(w *world, name string, pod *corev1.Pod) {
	ready, runs := apps.IsTrue(pod, corev1.PodReady), w.runsItsSpec(pod)
	if ready && runs {
		delete(j.out, name)
	}
	if ready && !runs && w.answering() && !j.last[name] && !j.flapped[name] && !readiness.MoveOf(pod).PartiallyPatched() &&
		slices.ContainsFunc(w.dated(pod), func(name string) bool { return !j.listed.Has(name) }) {
		w.violated("%s was reported Ready with the containers it had before its patch", name)
	}
}

func (w *world) runsItsSpec(pod *corev1.Pod) bool {
	for _, want := range fixture.Living(pod.Spec) {
		if c := w.kubelet.state[pod.Name][want.Name]; c == nil || !c.isAs(pod, want) || !c.ready || !c.dying.IsZero() {
			return false
		}
	}
	return true
}

// isAs reports whether the container was started as the pod has it: with that image, and with the labels and annotations that its variables
// read.
func (c *container) isAs(pod *corev1.Pod, want corev1.Container) bool {
	return c.image == want.Image && c.variables == fixture.Variables(pod, want)
}

// dated returns the containers that still run another image than in the spec, or have other variables.
func (w *world) dated(pod *corev1.Pod) []string {
	var names []string
	for _, want := range fixture.Living(pod.Spec) {
		if c := w.kubelet.state[pod.Name][want.Name]; c != nil && c.running && !c.isAs(pod, want) {
			names = append(names, want.Name)
		}
	}
	return names
}

// check demands what must be true at every moment. Label and owner of every pod agree. The images of a pod agree with them, too, except
// those of auxiliary containers, and unless the pod was patched while it served. No more serving pods are uncounted than may be
// unavailable, because they would be deleted if Stayput died, except pods that began to serve after replicas were lowered. All that depends
// on what is stored, and on time only so far as pods become available.
func (w *world) check() {
	if w.checkedAt == w.version {
		return
	}
	w.checkedAt = w.version
	w.checkRisk()
	w.checkSurge()
	for _, pod := range w.pods.objects {
		owner := w.sets.objects[metav1.GetControllerOf(pod).Name]
		if !readiness.Live(pod) || owner == nil {
			continue
		}
		if pod.Labels[inplace.LabelTemplateHash] != owner.Labels[inplace.LabelTemplateHash] {
			w.violated("%s is labelled %s and owned by %s", pod.Name, pod.Labels[inplace.LabelTemplateHash], owner.Name)
		}
		if !readiness.MoveOf(pod).PartiallyPatched() && !w.awaitedAs(pod, owner.Spec.Template) {
			w.violated("%s has %s %v and is owned by %s", pod.Name, fixture.Images(pod), pod.Annotations, owner.Name)
		}
		if of := fixture.Sizes(&corev1.Pod{Spec: owner.Spec.Template.Typed().Spec}); !w.foreign && fixture.Sizes(pod) != of &&
			len(readiness.MoveOf(pod).Resize) == 0 {
			w.violated("%s has %s, is owned by %s, and nothing shows it", pod.Name, fixture.Sizes(pod), owner.Name)
		}
	}
}

// awaited returns the images without those of auxiliary containers.
func (w *world) awaited(images string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(images, ","), func(image string) bool {
		name, _, _ := strings.Cut(image, "=")
		return w.rules.listed.Has(name)
	}), ",")
}

// checkSurge demands that no pod is ever unavailable where none may be, unless one failed by itself or there was no room for surge.
func (w *world) checkSurge() {
	available, none := 0, false
	for _, rs := range w.sets.objects {
		none = none || rs.Labels[inplace.LabelSurgeReplicas] == deployments.NoSurge
	}
	for _, pod := range w.pods.objects {
		if is, _ := readiness.AvailableAt(pod, w.deployment().Spec.MinReadySeconds, w.now); is && readiness.Live(pod) {
			available++
		}
	}
	if w.rules.mayBeUnavailable = w.rules.mayBeUnavailable || none; none && apps.ExplicitZero(w.deployment()) {
		w.violated("the update goes on without surge although no pod may be unavailable at all")
	}
	want := int(apps.Desired(w.deployment()) - w.deployment().MaxUnavailable())
	if w.rules.originals != nil && w.surges() && !w.rules.loose && !w.rules.disturbed && !w.rules.mayBeUnavailable && available < want {
		w.violated("%d pods are available instead of %d", available, want)
	}
}

func (w *world) checkRisk() {
	ready, uncounted := map[string]int{}, 0
	for _, pod := range w.pods.objects {
		if readiness.Live(pod) && apps.IsTrue(pod, corev1.PodReady) {
			ready[metav1.GetControllerOf(pod).Name]++
		}
	}
	for name, rs := range w.sets.objects {
		uncounted += max(0, ready[name]-int(apps.Replicas(rs)))
	}
	if allowed := w.mayBeOut(); !w.rules.loose && !w.rules.disturbed && uncounted > allowed {
		w.violated("%d pods that serve are uncounted, %d allowed", uncounted, allowed)
	}
}

// imagesOf returns the images of pods that are created from the template.
func (w *world) imagesOf(t apps.Template) string {
	if !w.mirror {
		return fixture.TemplateImages(t)
	}
	return fixture.Images(&corev1.Pod{Spec: w.admitted(t)})
}

// isAs reports whether the pod has the images of the template, by any of their names, its chart, and its time of the last restart.
func (w *world) isAs(pod *corev1.Pod, t apps.Template) bool {
	return sameImages(fixture.Images(pod), w.imagesOf(t)) && pod.Annotations[inplace.AnnotationRestartedAt] == restartedAt(t) &&
		pod.Labels[fixture.ChartKey] == t.Decoded().Labels[fixture.ChartKey]
}

// awaitedAs is isAs without auxiliary containers. These may have read the chart already.
func (w *world) awaitedAs(pod *corev1.Pod, t apps.Template) bool {
	early := len(readiness.MoveOf(pod).Read.Labels) > 0
	return sameImages(w.awaited(fixture.Images(pod)),
		w.awaited(w.imagesOf(t))) && pod.Annotations[inplace.AnnotationRestartedAt] == restartedAt(t) &&
		(early || pod.Labels[fixture.ChartKey] == t.Decoded().Labels[fixture.ChartKey])
}

func restartedAt(t apps.Template) string {
	return t.Decoded().Annotations[inplace.AnnotationRestartedAt]
}

// began returns when a simulation begins.
var began = func() time.Time { return time.Unix(1_000_000, 0) }

// emptyWorld returns a cluster without a workload.
func emptyWorld(t testing.TB, seed int64, tracing bool) *world {
	w := &world{t: t, seed: seed, rng: rand.New(rand.NewSource(seed)), now: began(), tracing: tracing,
		mode: inplace.ModeInPlace, quota: plenty, room: plenty, answers: map[string]error{}, heldSince: map[string]time.Time{},
		deployments: newStore[*apps.Deployment](), sets: newStore[*apps.ReplicaSet](), pods: newStore[*corev1.Pod](),
		slices: newStore[*discoveryv1.EndpointSlice](), budgets: newStore[*policyv1.PodDisruptionBudget](),
		daemonSets: newStore[*apps.DaemonSet](), revisions: newStore[*apps.ControllerRevision]()}
	w.rules.out, w.rules.gone, w.rules.last = map[string]bool{}, map[string]time.Time{}, map[string]bool{}
	w.rules.flapped = map[string]bool{}
	w.settings.Drain = []time.Duration{0, 500 * time.Millisecond, 2 * time.Second}[w.rng.Intn(3)]
	return w
}

// newWorld returns a cluster with a Deployment. The first rollout is native.
func newWorld(t testing.TB, seed int64, tracing bool) *world {
	w := emptyWorld(t, seed, tracing)
	w.settings.Surge = []inplace.Surge{inplace.SurgeNever, inplace.SurgeNeeded, inplace.SurgeReplace}[w.rng.Intn(3)]
	for i := range w.lags {
		w.lags[i] = lag{slow: w.rng.Intn(3), by: 1 + w.rng.Intn(12)}
	}
	w.sized = seed%5 == 2
	w.meshed, w.noSetup = seed%5 > 2, seed%5 == 4
	w.reads = seed%7 > 3
	put(w, w.deployments, w.randomDeployment())
	startNatives(w)
	w.kubelet, w.stayput, w.endpointsController = newKubelet(w), newStayput(w), newEndpointsController(w)
	w.kubelet.hasty = true
	w.unserved, w.claim = seed%4 == 0, []string{"", "", "data"}[seed%3]
	return w
}

func (w *world) randomDeployment() *apps.Deployment {
	d := fixture.NewDeployment(int32(1+w.rng.Intn(6)), w.randomApp())
	for strings.Contains(fixture.RawOf(d.Spec.Template), "bad") || strings.Contains(fixture.RawOf(d.Spec.Template), "crash") {
		d.Spec.Template = w.randomApp().Template()
	}
	unavailable, surge := intstr.Parse([]string{"25%", "1", "2", "50%", "100%"}[w.rng.Intn(5)]),
		intstr.Parse([]string{"25%", "25%", "1", "0"}[w.rng.Intn(4)])
	if w.settings.Surge.Allowed() && w.rng.Intn(2) == 0 {
		unavailable, surge = intstr.Parse([]string{"0", "10%"}[w.rng.Intn(2)]), intstr.Parse([]string{"25%", "1", "2"}[w.rng.Intn(3)])
		d.Spec.ProgressDeadlineSeconds = new([]int32{600, 5}[w.rng.Intn(2)])
	}
	d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: &unavailable, MaxSurge: &surge}
	d.Annotations[inplace.AnnotationInPlaceAnnotations] = "example.com/*"
	d.Spec.MinReadySeconds = []int32{0, 0, 0, 2}[w.rng.Intn(4)]
	d.Spec.RevisionHistoryLimit = new([]int32{10, 10, 0, 1}[w.rng.Intn(4)])
	if w.rng.Intn(10) == 0 {
		d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		d.Spec.Replicas = new(int32(1))
	}
	return d
}

func (w *world) randomApp() fixture.App {
	pick := func(values ...string) string { return values[w.rng.Intn(len(values))] }
	a := fixture.App{Image: pick("v1", "v2", "v2", "v3", "v3-retag", "bad", "crash"), Sidecar: "s" + pick("1", "1", "1", "2", "2", "-bad"),
		Chart: pick("", "c1", "c2"), Reads: w.reads}
	if w.meshed {
		a.NoSetup = w.noSetup
		a.Mesh = pick("m1", "m1", "m2", "m2-retag", "m-bad", "m-crash")
	}
	if w.sized {
		a.CPU, a.Renews = pick("100m", "200m", "300m"), w.renews
		if w.rules.loose && w.rng.Intn(8) == 0 {
			a.CPU = fixture.TooMuch
		}
	}
	return a
}

// randomEdit returns an app that may have a note, and ask for a restart.
func (w *world) randomEdit() fixture.App {
	a := w.randomApp()
	a.Note = []string{"", "", "n1", "n2"}[w.rng.Intn(4)]
	if w.rng.Intn(4) == 0 && w.restarts(a) {
		a.Restarted = w.now.Format(time.RFC3339Nano)
	}
	return a
}

// restarts reports whether this world can restart the app in place: with an init container a restart is native.
func (w *world) restarts(a fixture.App) bool { return w.rules.loose || a.Mesh == "" || a.NoSetup }

// lag is how the watches of one process differ: one of those of Deployments, ReplicaSets and pods is slower than the others.
type lag struct{ slow, by int }

// watch picks the watch that delivers next.
func (w *world) watch(process int) int {
	lag := w.lags[process]
	if pick := w.rng.Intn(3); pick != lag.slow || w.rng.Intn(lag.by) == 0 {
		return pick
	}
	return (lag.slow + 1 + w.rng.Intn(2)) % 3
}

// tick makes one random event happen.
func (w *world) tick(chaos int) {
	w.now = w.now.Add(time.Duration(w.rng.Intn(20)) * time.Millisecond)
	w.tickEndpoints()
	w.tickBudgets()
	w.tickHooks()
	switch n := w.rng.Intn(100); {
	case n < 12:
		w.deploymentController.deliver(w.watch(1), 1+w.rng.Intn(3))
	case n < 18:
		w.deploymentController.run()
	case n < 28:
		w.replicaSetController.deliver(w.watch(2), 1+w.rng.Intn(3))
	case n < 36:
		w.replicaSetController.run()
	case n < 43:
		w.kubelet.pods.advance(1 + w.rng.Intn(5))
	case n < 58:
		if pods := w.kubelet.pods.list(); len(pods) > 0 {
			w.kubelet.run(pods[w.rng.Intn(len(pods))].Name)
		}
		w.runPrePullPods()
	case n < 78:
		w.stayput.deliver(w.watch(0), 1+w.rng.Intn(4))
	case n < 97:
		w.stayput.run()
	case n < 97+chaos:
		w.disturb()
	}
	w.check()
}

func (w *world) tickEndpoints() {
	switch w.rng.Intn(12) {
	case 0, 1:
		w.endpointsController.pods.advance(1 + w.rng.Intn(4))
	case 2, 3:
		w.endpointsController.run()
	case 4, 5:
		w.stayput.deliver(3, 1+w.rng.Intn(2))
	}
}

// disturb does what users and failures do.
func (w *world) disturb() {
	w.repartition()
	switch n := w.rng.Intn(27); {
	case n < 3:
		w.restart()
	case n < 8:
		w.user("edits the template", func(d *apps.Deployment) { d.Spec.Template = w.randomEdit().Template() })
	case n < 12:
		w.undo()
	case n < 14:
		w.user("pauses or resumes", func(d *apps.Deployment) { d.Spec.Paused = !d.Spec.Paused })
	case n < 16:
		w.rules.disturbed, w.rules.surprised = true, true
		w.kubelet.crash()
	case n < 17:
		w.logf("our process restarts")
		before := w.stayput
		w.stayput = newStayput(w)
		w.stayput.lease, w.stayput.scaled = before.lease, before.scaled
	case n < 18:
		w.kubelet.restart()
	case n < 19:
		w.logf("the native controllers restart")
		startNatives(w)
	case n < 20:
		if pods := sorted(w.pods.objects); len(pods) > 0 {
			w.logf("another client deletes a pod")
			w.rules.disturbed, w.rules.deleted, w.rules.surprised = true, true, true
			if err := w.terminate(pods[w.rng.Intn(len(pods))].Name); err != nil {
				w.violated("delete: %v", err)
			}
		}
	case n == 24:
		w.quota = map[bool]int{true: len(w.pods.objects), false: plenty}[w.quota == plenty]
		w.logf("the quota is %d", w.quota)
	case n == 25:
		w.room = map[bool]int{true: w.placed(), false: plenty}[w.room == plenty]
		w.logf("the nodes have room for %d", w.room)
	case n == 26:
		w.list()
		if w.kubelet.short = w.sized && w.rng.Intn(2) == 0; w.kubelet.short {
			w.logf("the nodes have no capacity for resizes")
		}
		w.cramp()
	case w.rules.loose:
		w.disturbLoosely()
	}
}

// cramp makes one of the sizes infeasible on the node of a pod.
func (w *world) cramp() {
	pods := slices.Sorted(maps.Keys(w.pods.objects))
	if !w.sized || !w.rules.loose || len(pods) == 0 {
		return
	}
	pod, cpu := pods[w.rng.Intn(len(pods))], []string{"100m", "200m", "300m"}[w.rng.Intn(3)]
	w.kubelet.cramped = map[string]string{pod: cpu}
	w.logf("the node of %s has no %s for it", pod, cpu)
}

// list lets the user list auxiliary containers.
func (w *world) list() {
	list := []string{"", "side", "app", "side, app", "side,mesh", "mesh,ghost", "*"}[w.rng.Intn(7)]
	w.user("lists as auxiliary "+list, func(d *apps.Deployment) { d.Annotations[inplace.AnnotationAuxiliary] = list })
	w.rules.listed = append(w.rules.listed, inplace.AuxiliaryOf(w.deployment().Annotations)...)
}

func (w *world) disturbLoosely() {
	switch n := w.rng.Intn(11); {
	case n == 10:
		w.user("edits the tolerations", func(d *apps.Deployment) {
			a := appOf(d.Spec.Template)
			a.Tolerates = []string{"a", "b", "a b", "b a", "a b c", corev1.TaintNodeNotReady, ""}[w.rng.Intn(7)]
			d.Spec.Template = a.Template()
		})
	case n == 9:
		w.user("changes the list of annotations", func(d *apps.Deployment) {
			d.Annotations[inplace.AnnotationInPlaceAnnotations] = []string{"example.com/*", fixture.NoteKey, "example.com/other",
				"a,"}[w.rng.Intn(4)]
		})
	case n == 6:
		w.unreachable = w.rng.Intn(3) == 0
		w.unasked = w.rng.Intn(3) == 0
		w.logf("the webhooks are unreachable: %v, that for reports of kubelets: %v", w.unreachable, w.unasked)
	case n == 7:
		resource := []string{"replicasets", "pods", "pods/status", "deployments/status"}[w.rng.Intn(4)]
		w.answers[resource] = []error{nil, errRefused, errFailing}[w.rng.Intn(3)]
		w.logf("our writes to %s are answered: %v", resource, w.answers[resource])
	case n == 8:
		w.pass()
	case n < 3 && w.deployment().Rolls():
		w.user("scales", func(d *apps.Deployment) { d.Spec.Replicas = new(int32(w.rng.Intn(7))) })
	case n < 4:
		w.logf("the label is changed")
		w.mode = map[inplace.Mode]inplace.Mode{inplace.ModeInPlace: inplace.ModeNone, inplace.ModeNone: inplace.ModeInPlace}[w.mode]
		w.stayput.stale = true
	case n < 5:
		w.user("edits the environment", func(d *apps.Deployment) {
			a := w.randomEdit()
			a.Env = strconv.Itoa(w.rng.Intn(3))
			d.Spec.Template = a.Template()
		})
	case w.rng.Intn(3) == 0:
		w.die(w.rng.Intn(2) == 0)
	}
}

// die ends the leader, maybe for good. Other managers may go on answering webhooks until another one leads, or for a while.
func (w *world) die(forGood bool) {
	w.stayput.running, w.stayput.queue, w.stayput.gone = false, nil, forGood
	w.abandoned = w.rng.Intn(2) == 0
	clear(w.stayput.scaled) // a known limit: see Planner.replicasAnnotations in package deployments
	w.logf("our process dies, for good: %v; no other answers: %v", forGood, w.abandoned)
}

func (w *world) user(does string, change func(*apps.Deployment)) {
	d, err := alter(w, w.deployments, "web", "", func(d *apps.Deployment) {
		before := d.DeepCopy()
		change(d)
		if fixture.RawOf(before.Spec.Template) != fixture.RawOf(d.Spec.Template) || apps.Desired(before) != apps.Desired(d) ||
			before.Spec.Paused != d.Spec.Paused {
			d.Generation++
		}
	})
	if err != nil {
		w.violated("the user %s: %v", does, err)
	}
	w.logf("the user %s: %d × %s paused %v", does, apps.Desired(d), fixture.TemplateImages(d.Spec.Template), d.Spec.Paused)
}

// restart is `kubectl rollout restart`.
func (w *world) restart() {
	a := appOf(w.deployment().Spec.Template)
	if !w.deployment().Spec.Paused && w.restarts(a) {
		a.Restarted = w.now.Format(time.RFC3339Nano)
		w.user("restarts", func(d *apps.Deployment) { d.Spec.Template = a.Template() })
	}
}

// undo is `kubectl rollout undo` to some revision.
func (w *world) undo() {
	sets := sorted(w.sets.objects)
	if len(sets) == 0 || w.deployment().Spec.Paused {
		return
	}
	w.undoTo(sets[w.rng.Intn(len(sets))])
}

// undoTo is Rollback in kubectl/pkg/polymorphichelpers/rollback.go: the annotations that the Deployment controller has copied to the
// ReplicaSet replace those of the Deployment.
func (w *world) undoTo(rs *apps.ReplicaSet) {
	w.user("undoes", func(d *apps.Deployment) {
		before := d.Annotations
		d.Annotations = deployments.Undone(before, rs.Annotations)
		d.Spec.Template = appOf(rs.Spec.Template).Template()
		if w.mode.Manages() && !w.unreachable {
			r := w.rollout()
			r.Deployment = d
			d.Annotations = patches.Changed(d.Annotations, r.Undone(before))
		}
	})
}

// appOf returns the app from which a template was made.
func appOf(template apps.Template) fixture.App {
	typed := template.Typed()
	a := fixture.App{Image: typed.Spec.Containers[0].Image, Chart: typed.Labels[fixture.ChartKey], Note: typed.Annotations[fixture.NoteKey],
		Restarted: typed.Annotations[inplace.AnnotationRestartedAt]}
	if len(typed.Spec.Containers) > 1 {
		a.Sidecar = typed.Spec.Containers[1].Image
	}
	a.Reads = slices.ContainsFunc(typed.Spec.Containers[0].Env, func(e corev1.EnvVar) bool { return e.ValueFrom != nil })
	for _, toleration := range typed.Spec.Tolerations {
		a.Tolerates += toleration.Key + " "
	}
	if n := len(typed.Spec.InitContainers); n > 0 {
		a.Mesh, a.NoSetup = typed.Spec.InitContainers[n-1].Image, n == 1
	}
	if env := typed.Spec.Containers[0].Env; len(env) > 0 {
		a.Env = env[0].Value
	}
	if cpu, has := typed.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU]; has {
		a.CPU = cpu.String()
	}
	return a
}

// calm lets all processes finish, in no particular order. It delivers all events.
func (w *world) calm() {
	idle := 0
	for round := 0; idle < 90 && w.failed == ""; round++ {
		if round > 600 && (len(w.answers) > 0 || w.stayput.gone) {
			return // it may go on for as long as Stayput's writes fail, or no process is left that could end a crash loop
		}
		if round > 6000 {
			w.violated("it does not come to rest")
		}
		before := w.version
		for watch := range 4 {
			w.deploymentController.deliver(watch, 100)
			w.replicaSetController.deliver(watch, 100)
			w.stayput.deliver(watch, 100)
		}
		w.runOthers()
		for range 1 + len(w.stayput.queue) {
			w.stayput.run()
		}
		w.check()
		w.now = w.now.Add(50 * time.Millisecond)
		if len(w.answers) > 0 && round > 100 {
			w.now = w.now.Add(time.Second) // Stayput waits two minutes before it falls back
		}
		w.collectGarbage()
		if idle++; w.version != before {
			idle = 0
		} else if idle > 20 && (len(w.stayput.queue) == 0 || len(w.answers) > 0) { // a process that has planned its writes makes them at once
			w.now = w.now.Add(6 * time.Second)
		}
		if round > 1000 {
			w.now = w.now.Add(time.Second) // a crash loop must not keep the clock from any deadline
		}
	}
}

// runOthers lets all processes but Stayput act on the events they have received.
func (w *world) runOthers() {
	w.kubelet.pods.advance(100)
	w.endpointsController.pods.advance(100)
	w.endpointsController.run()
	w.runBudgets()
	w.runHooks()
	w.deploymentController.run()
	w.replicaSetController.run()
	for _, pod := range w.kubelet.pods.list() {
		w.kubelet.run(pod.Name)
	}
	w.runPrePullPods()
}

// finish removes all obstacles and demands the right end.
func (w *world) finish() {
	w.quota, w.kubelet.short, w.kubelet.cramped = plenty, false, nil
	w.user("ends with something that works", func(d *apps.Deployment) {
		d.Spec.Paused = false
		delete(d.Annotations, inplace.AnnotationPartition)
		if raw := fixture.RawOf(d.Spec.Template); strings.Contains(raw, "bad") || strings.Contains(raw, "crash") || strings.Contains(raw, `"9"`) ||
			w.rng.Intn(3) == 0 {
			a := fixture.App{Image: "v" + strconv.Itoa(1+w.rng.Intn(3)), Sidecar: "s1", CPU: map[bool]string{true: "200m"}[w.sized],
				Renews: w.renews, Reads: w.reads}
			if w.meshed {
				a.Mesh, a.NoSetup = "m1", w.noSetup
			}
			d.Spec.Template = a.Template()
		}
	})
	w.room = plenty
	if d := w.deployment(); !d.Rolls() || d.MaxUnavailable() > 0 {
		w.room = int(apps.Desired(d)) // that must do
		w.logf("the nodes have room for %d", w.room)
	}
	if !w.stayput.running && !w.stayput.gone {
		w.logf("our process comes back")
		w.stayput = newStayput(w)
	}
	w.abandoned = w.stayput.gone
	w.calm()
	w.obey()
	w.calm()
	if w.stayput.gone || w.mute() {
		w.resync()
	}
	if w.stayput.gone {
		w.checkInService()
		w.deleteStranded()
		w.calm()
	}
	w.checkEnd()
}

// obey demands that writes which always fail end the hold. After that the API server takes writes to pods again.
func (w *world) obey() {
	if len(w.answers) > 0 && w.held() && w.failed == "" && !w.complete() {
		for resource, err := range w.answers {
			if err != nil && w.stayput.failed {
				w.violated("held although %s is answered %v", resource, err)
			}
		}
	}
	delete(w.answers, "pods")
	delete(w.answers, "pods/status")
	w.stayput.stale = true
}

// mute reports whether the API server refuses all writes with which Stayput could nudge the Deployment controller.
func (w *world) mute() bool {
	return w.answers["replicasets"] != nil && w.answers["deployments/status"] != nil
}

func (w *world) complete() bool { return statusComplete(w.deployment(), w.deployment().Status) }

func (w *world) describe() string {
	r := w.rollout()
	plan := r.Plan()
	text := fmt.Sprintf("desired %d, held %v %s, %s: %s\n", apps.Desired(r.Deployment), plan.Decision.Held, plan.Decision.Reasons,
		plan.Phase, plan.Message)
	for _, rs := range r.ReplicaSets {
		text += fmt.Sprintf("  %s %s: replicas %d, status %d ready %d, generation %d observed %d, %v %v\n", rs.Name,
			fixture.TemplateImages(rs.Spec.Template),
			apps.Replicas(rs), rs.Status.Replicas, rs.Status.ReadyReplicas, rs.Generation, rs.Status.ObservedGeneration, rs.Labels, rs.Annotations)
	}
	for _, pod := range r.Seen.Pods {
		text += fmt.Sprintf("  %s of %s: %s ready %v out %v %s\n", pod.Name, metav1.GetControllerOf(pod).Name, fixture.Images(pod),
			apps.IsTrue(pod, corev1.PodReady), readiness.Out(pod), pod.Annotations[inplace.AnnotationMove])
	}
	return text
}

// resync happens to Deployments and ReplicaSets twice a day at the latest. A deletion that was held just before Stayput died is not tried
// again before, unless the ReplicaSet or one of its pods changes. Neither is a write that the Deployment controller has given up.
func (w *world) resync() {
	w.deploymentController.resync()
	w.replicaSetController.resync()
	w.calm()
}

// checkInService demands that no pod on a node is out of service, and that each is as Ready as its kubelet says, although no process of
// Stayput is left.
func (w *world) checkInService() {
	for _, pod := range sorted(w.pods.objects) {
		said, known := w.kubelet.said[pod.Name]
		runs := readiness.Live(pod) && pod.Spec.NodeName != ""
		differs := known && isTrue(said, corev1.PodReady) != apps.IsTrue(pod, corev1.PodReady)
		if runs && (readiness.Out(pod) || differs) {
			w.violated("%s is out of service, and no manager is left", pod.Name)
		}
	}
}

// deleteStranded does what an administrator has to do if Stayput is gone without having been uninstalled, and an update was undone since:
// pods that were patched while they served have other images than their ReplicaSet.
func (w *world) deleteStranded() {
	for _, pod := range sorted(w.pods.objects) {
		owner := w.sets.objects[metav1.GetControllerOf(pod).Name]
		if readiness.Live(pod) && owner != nil && (!w.isAs(pod, owner.Spec.Template) ||
			fixture.Sizes(pod) != fixture.Sizes(&corev1.Pod{Spec: owner.Spec.Template.Typed().Spec})) {
			if err := w.terminate(pod.Name); err != nil {
				w.violated("delete: %v", err)
			}
		}
	}
}

func (w *world) checkEnd() {
	if w.failed != "" {
		return
	}
	r := w.rollout()
	newRS := r.UpdateRevision()
	if newRS == nil {
		w.violated("no ReplicaSet has the Deployment's template")
		return
	}
	for _, rs := range r.ReplicaSets {
		marked := revisions.Updating(rs) || w.fallback.Hash != "" || rs.Labels[inplace.LabelSurgeReplicas] != "" ||
			rs.Labels[inplace.LabelReplicas] != ""
		if !w.stayput.gone && marked && w.answers["replicasets"] == nil {
			w.violated("%s is still marked: %v", rs.Name, rs.Labels)
		}
		if want := map[bool]int32{true: apps.Desired(r.Deployment), false: 0}[rs == newRS]; apps.Replicas(rs) != want {
			w.violated("%s has %d replicas instead of %d", rs.Name, apps.Replicas(rs), want)
		}
	}
	for _, pod := range w.rules.originals {
		if !w.rules.loose && !w.rules.deleted && w.pods.objects[pod.Name] == nil {
			w.violated("%s was there before, and is gone", pod.Name)
		}
	}
	for _, pod := range r.Seen.Pods {
		switch {
		case !w.stayput.gone && (pod.Annotations[inplace.AnnotationSurgePod] != "" || pod.Annotations[corev1.PodDeletionCost] != ""):
			w.violated("%s is still marked: %v", pod.Name, pod.Annotations)
		case !metav1.IsControlledBy(pod, newRS) || pod.DeletionTimestamp != nil:
			w.violated("%s is not one of %s", pod.Name, newRS.Name)
		case !w.isAs(pod, newRS.Spec.Template) || !w.runsItsSpec(pod):
			w.violated("%s has %s, or does not run it", pod.Name, fixture.Images(pod))
		case fixture.Sizes(pod) != fixture.Sizes(&corev1.Pod{Spec: newRS.Spec.Template.Typed().Spec}) || !w.kubelet.sized(pod):
			w.violated("%s has %s, or was not given it: %v", pod.Name, fixture.Sizes(pod), w.kubelet.sizes[pod.Name])
		case !w.stayput.gone && len(readiness.MoveOf(pod).Resize) > 0:
			w.violated("%s is marked as partially patched for ever: %s", pod.Name, pod.Annotations[inplace.AnnotationMove])
		case !fixture.TolerateTheSame(pod.Spec.Tolerations, w.admitted(newRS.Spec.Template).Tolerations):
			w.violated("%s has tolerations %v", pod.Name, pod.Spec.Tolerations)
		case pod.Annotations[fixture.NoteKey] != newRS.Spec.Template.Typed().Annotations[fixture.NoteKey]:
			w.violated("%s has annotations %v", pod.Name, pod.Annotations)
		case !apps.IsTrue(pod, corev1.PodReady):
			w.violated("%s is not ready", pod.Name)
		}
	}
	if len(w.pull.PrePullPods) > 0 && !w.stayput.gone {
		w.violated("%d pre-pull pods are left", len(w.pull.PrePullPods))
	}
	if len(r.Seen.Pods) != int(apps.Desired(r.Deployment)) {
		w.violated("%d pods instead of %d", len(r.Seen.Pods), apps.Desired(r.Deployment))
	}
	if !statusComplete(r.Deployment, r.Deployment.Status) {
		w.violated("the status does not say complete: %+v", r.Deployment.Status)
	}
}

// skewOf returns how far the kubelets' clocks are ahead of the leader's.
func skewOf(seed int64) time.Duration {
	return []time.Duration{0, 0, -2 * time.Second, 0, 2 * time.Second, -30 * time.Second}[seed%6]
}

// simulate runs one seed.
func simulate(t testing.TB, seed int64, tracing bool) *world {
	w := newWorld(t, seed, tracing)
	w.pull.Parallel = int(seed % 3)
	w.kubelet.skew = skewOf(seed)
	w.mirror = seed%4 == 1
	w.calm()
	if seed%5 < 2 {
		w.list()
	}
	w.rules.loose = w.rng.Intn(2) == 0
	w.renews = w.rules.loose && seed%10 == 2
	w.rules.originals = sorted(w.pods.objects)
	w.logf("loose %v, strategy %+v, minReadySeconds %d", w.rules.loose, w.deployment().Spec.Strategy,
		w.deployment().Spec.MinReadySeconds)
	for range 100 + w.rng.Intn(500) {
		if w.failed == "" {
			w.tick(3)
		}
		if seed%4 == 3 && w.rng.Intn(150) == 0 {
			w.pause()
		}
	}
	w.finish()
	return w
}

// pause is some minutes in which users do nothing and all processes go on. Each pod's kubelet acts about every two seconds.
func (w *world) pause() { w.lull(20, 160) }

// lull is such a pause of so many seconds at least, and less than so many more.
func (w *world) lull(least, more int) {
	w.rules.paused = true
	for end := w.now.Add(time.Duration(least+w.rng.Intn(more)) * time.Second); w.now.Before(end) &&
		w.failed == ""; w.now = w.now.Add(50 * time.Millisecond) {
		w.tick(0)
	}
	w.logf("after a pause")
}

// traced is how many events before a failure are shown.
const traced = 80

// addsUp demands that no update falls back because its replicas do not add up.
func (w *world) addsUp(plan steps.Plan) {
	for _, reason := range plan.Decision.Reasons {
		if reason.Code == inplace.CodeUnbalanced {
			w.violated("%s", reason.Message)
		}
	}
}

// TestSimulation runs all clients of a Deployment's objects in random order, on caches that lag by different delays, with users and
// failures in between. It demands what must be true at every moment and in the end. STAYPUT_SEEDS=n runs n seeds, STAYPUT_SEED=n runs that
// seed, and both together run n seeds from there on. STAYPUT_TRACES=folder writes what happened in each seed to that folder: a change of
// code that changes no behaviour leaves these files as they were.
func TestSimulation(t *testing.T) {
	runSeeds(t, func(seed int64, tracing bool) outcome {
		w := simulate(t, seed, tracing)
		return outcome{w.failed, w.describe(), w.trace}
	})
}

// outcome is how the simulation of a seed ended: why it failed (empty if it did not), the state in the end, and the trace.
type outcome struct {
	failed, end string
	trace       []string
}

// story returns the text that is shown of a failure.
func (o outcome) story() string {
	return o.end + strings.Join(o.trace[max(0, len(o.trace)-traced):], "\n")
}

// within runs a simulation.
var within = func(_ *testing.T, simulate func()) { simulate() }

// runSeeds runs the seeds that the environment asks for, or 150, and shows the events before the first failures.
func runSeeds(t *testing.T, simulate func(seed int64, tracing bool) outcome) {
	t.Helper()
	first, seeds := int64(0), int64(150)
	if n, err := strconv.ParseInt(os.Getenv("STAYPUT_SEED"), 10, 64); err == nil {
		first, seeds = n, 1
	}
	if n, err := strconv.ParseInt(os.Getenv("STAYPUT_SEEDS"), 10, 64); err == nil {
		seeds = n
	}
	traces := os.Getenv("STAYPUT_TRACES")
	failures := 0
	for seed := first; seed < first+seeds; seed++ {
		var ended outcome
		within(t, func() { ended = simulate(seed, traces != "") })
		if traces != "" {
			writeTrace(t, filepath.Join(traces, fmt.Sprintf("%s-%d", t.Name(), seed)), ended)
		}
		if ended.failed == "" {
			continue
		}
		story := ""
		if failures++; failures <= 3 {
			within(t, func() { story = simulate(seed, true).story() })
		}
		t.Errorf("seed %d: %s\n%s", seed, ended.failed, story)
	}
	if failures > 0 {
		t.Logf("%d of %d seeds failed", failures, seeds)
	}
}

func writeTrace(t *testing.T, file string, ended outcome) {
	t.Helper()
	if err := os.WriteFile(file, []byte(strings.Join(append(ended.trace, ended.end, ended.failed), "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}
