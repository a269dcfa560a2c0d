package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
)

// ensemble is a StatefulSet with Stayput, kubelets that take their time, and the native controller, which act in random order. All see the
// same objects, but the native controller may see older labels of pods: it deletes pods without a guard. What a decision of Stayput on an
// older cache does is decided by the guards of writes, and by HoldsDeletion, which reads live.
type ensemble struct {
	*fixture.Members
	random *rand.Rand
	alive  bool // whether a manager is
	made   int
	memory engine.Memory
	// several is the feature MaxUnavailableStatefulSet.
	several bool
	// first is spec.ordinals.start, and partition that of the spec.
	first, partition int
	// labels are the revisions of pods in the native controller's cache, by UID.
	labels map[types.UID]string
	// deleted are the pods that the native controller has deleted and did not have to.
	deleted []string
	traces  []string
	// protection is the PodDisruptionBudget of these pods; nil if there is none.
	protection *protection
	// others act, too.
	others []func()
}

func newEnsemble(t *testing.T, seed uint64) *ensemble {
	e := &ensemble{random: rand.New(rand.NewPCG(seed, 0)), alive: true, several: seed%3 == 0, first: int(seed % 5)}
	changes := []func(*fixture.Members){fixture.From(e.first)}
	if seed%2 == 1 {
		changes = append(changes, fixture.Parallel)
	}
	e.Members = fixture.NewMembers(t, 3, changes...)
	for ordinal := range 10 {
		if ordinal < e.first || ordinal >= e.first+3 {
			e.AddNode(fmt.Sprint("n", ordinal))
		}
	}
	return e
}

func (e *ensemble) trace(format string, arguments ...any) {
	e.traces = append(e.traces, fmt.Sprintf(format, arguments...))
}

// act lets one of them act.
func (e *ensemble) act() {
	e.Fleet.Seen.Now = e.Fleet.Seen.Now.Add(300 * time.Millisecond)
	switch of := e.random.IntN(3 + len(e.others)); {
	case of == 0 && e.alive:
		e.stayput(-1)
	case of == 1:
		e.controller()
	case of > 2:
		e.others[of-3]()
	case len(e.Fleet.Seen.Pods) > 0:
		e.kubelet(e.Fleet.Seen.Pods[e.random.IntN(len(e.Fleet.Seen.Pods))])
	}
}

// stayput carries out the first steps of a plan; all of them if that is negative.
func (e *ensemble) stayput(most int) {
	e.memory.Observe(e.Fleet.Seen.Pods, e.Fleet.Seen.Now)
	e.Steps, e.Rollout.Seen.Disruption, e.Rollout.Seen.TakenOut = nil, e.protection.cache(), e.memory.TakenOut
	for i, step := range e.Of().Plan().Steps {
		if i == most {
			break
		}
		if e.protection.allows(step) {
			e.CarryOut(step)
			e.memory.Made(step, e.Fleet.Seen.Now)
		}
	}
	for _, step := range e.Steps {
		e.trace("stayput: %s", step)
	}
}

// mayFail reports whether the container of the pod may fail and be restarted as it was: its kubelet does not know of a patch yet.
func (e *ensemble) mayFail(pod *corev1.Pod) bool {
	unpatched := e.Fleet.Started(pod, "app") == pod.Spec.Containers[0].Image
	return pod.Status.ContainerStatuses[0].State.Running != nil && (unpatched || pod.Status.ObservedGeneration < pod.Generation)
}

// user changes the spec of a pod, so that no container restarts.
func (e *ensemble) user() {
	if len(e.Fleet.Seen.Pods) == 0 || e.random.IntN(8) > 0 {
		return
	}
	pod := e.Fleet.Seen.Pods[e.random.IntN(len(e.Fleet.Seen.Pods))]
	e.trace("user: changes %s", pod.Name)
	pod.Generation++
}

// kubelet reports the pod. After a restart, the containers are not ready in the first report. Now and then it reports that it has seen a
// patch only together with what it did, or that a container failed and was restarted as it was.
func (e *ensemble) kubelet(pod *corev1.Pod) {
	if pod.DeletionTimestamp != nil {
		e.Lose(e.StatefulSet.Ordinal(pod))
		return
	}
	before, last := e.Runs[pod.Name+"/app"], pod.DeepCopy()
	switch of := e.random.IntN(8); {
	case of == 0 && e.protection == nil && e.mayFail(pod):
		e.made++
		pod.Status.ContainerStatuses[0].ContainerID = fmt.Sprint(pod.Name, "/again-", e.made)
		e.trace("kubelet: the container of %s failed and was restarted", pod.Name)
	case of == 1:
		pod.Status.ObservedGeneration = pod.Generation
		e.Kubelet(pod)
	default:
		e.Kubelet(pod)
	}
	if now := e.Runs[pod.Name+"/app"]; before != "" && now != before {
		fixture.ConditionIs(corev1.ContainersReady, corev1.ConditionFalse)(pod)
		e.trace("kubelet: %s runs %s", pod.Name, now)
	}
	e.report(last, pod)
}

// report stores the Ready that the kubelet says after the last report, or what a webhook makes of it as long as a manager is.
func (e *ensemble) report(last, pod *corev1.Pod) {
	says := readiness.PutBack(pod, e.Fleet.Seen.Now)
	if was := apps.Condition(last, corev1.PodReady); was != nil && was.Status == says.Status && !readiness.Out(last) {
		says.LastTransitionTime = was.LastTransitionTime
	}
	pod.Status.Conditions = readiness.WithCondition(pod.Status.Conditions, says)
	if !e.alive {
		return
	}
	if stored := readiness.StoredReady(last, pod, e.Fleet.Seen.Now); stored != nil {
		pod.Status.Conditions = readiness.WithCondition(pod.Status.Conditions, *stored)
	}
}

// controller is one round of the native controller, whose watch may lag.
func (e *ensemble) controller() {
	e.observe()
	update := e.Of().UpdateRevision().Name
	sync := statefulSetController{set: e.StatefulSet, current: e.StatefulSet.Status.CurrentRevision, update: update, several: e.several,
		now: e.Fleet.Seen.Now}
	for _, pod := range e.Fleet.Seen.Pods {
		cached := pod.DeepCopy()
		cached.Labels[inplace.LabelRevisionHash] = e.labelOf(pod)
		sync.pods = append(sync.pods, cached)
	}
	sync.create = e.create
	sync.remove = func(cached *corev1.Pod, forUpdate bool) bool {
		return e.terminate(e.Member(e.StatefulSet.Ordinal(cached)), forUpdate)
	}
	e.StatefulSet.Status = statefulRound(e, sync)
}

// statefulRound is one round of the native controller. It returns the status that it writes.
var statefulRound = func(_ *ensemble, model statefulSetController) appsv1.StatefulSetStatus { return model.run() }

// observe updates the native controller's cache, unless its watch lags.
func (e *ensemble) observe() {
	if e.labels == nil || e.random.IntN(3) == 0 {
		e.labels = map[types.UID]string{}
		for _, pod := range e.Fleet.Seen.Pods {
			e.labels[pod.UID] = pod.Labels[inplace.LabelRevisionHash]
		}
	}
}

// labelOf returns the revision that the native controller sees.
func (e *ensemble) labelOf(pod *corev1.Pod) string {
	if label, known := e.labels[pod.UID]; known {
		return label
	}
	return pod.Labels[inplace.LabelRevisionHash]
}

func healthy(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && apps.IsTrue(pod, corev1.PodReady)
}

func (e *ensemble) create(ordinal int, name string) {
	revision := e.revision(name)
	e.made++
	pod := e.AddMember(ordinal)
	pod.UID = types.UID(fmt.Sprint(pod.Name, "-", e.made))
	pod.CreationTimestamp.Time = e.Fleet.Seen.Now
	pod.Labels[inplace.LabelRevisionHash] = revision.Name
	template, err := revision.Template()
	if err != nil {
		e.T.Fatal(err)
	}
	pod.Spec.Containers = template.Typed().Spec.Containers
	delete(e.Runs, pod.Name+"/app")
	fixture.Unready(pod)
	e.trace("controller: creates %s of %s", pod.Name, name)
}

func (e *ensemble) revision(name string) *apps.ControllerRevision {
	for _, each := range e.Of().Revisions {
		if each.Name == name {
			return each
		}
	}
	return nil
}

// terminate deletes the pod, unless that is refused.
func (e *ensemble) terminate(pod *corev1.Pod, forUpdate bool) (refused bool) {
	if held, _ := e.Of().HoldsDeletion(pod); held && e.alive {
		return true
	}
	if forUpdate {
		e.deleted = append(e.deleted, pod.Name)
	}
	e.trace("controller: deletes %s, which is %s", pod.Name, pod.Labels[inplace.LabelRevisionHash])
	e.remove(pod)
	return false
}

// remove begins the deletion of the pod.
func (e *ensemble) remove(pod *corev1.Pod) {
	gone := pod.DeepCopy()
	now := pod.CreationTimestamp
	now.Time = e.Fleet.Seen.Now
	gone.DeletionTimestamp = &now
	e.Fleet.Seen.Pods[slices.Index(e.Fleet.Seen.Pods, pod)] = gone
}

// index returns which of the pods that is, from the first ordinal on.
func (e *ensemble) index(pod *corev1.Pod) int { return e.StatefulSet.Ordinal(pod) - e.first }

// complete returns what is missing until the update is complete; empty if nothing is.
func (e *ensemble) complete() string {
	update := e.Of().UpdateRevision()
	if len(e.Fleet.Seen.Pods) != e.StatefulSet.Replicas() {
		return fmt.Sprintf("there are %d pods", len(e.Fleet.Seen.Pods))
	}
	for _, pod := range e.Fleet.Seen.Pods {
		switch of := pod.Labels[inplace.LabelRevisionHash]; {
		case !healthy(pod):
			return pod.Name + " is not Ready"
		case e.index(pod) >= e.partition && of != update.Name:
			return pod.Name + " is " + of
		}
	}
	return ""
}

// check reports what may never be.
func (e *ensemble) check() string {
	for _, pod := range e.Fleet.Seen.Pods {
		label := pod.Labels[inplace.LabelRevisionHash]
		if label == podstate.HashPartial {
			continue
		}
		template, err := e.revision(label).Template()
		if err != nil {
			e.T.Fatal(err)
		}
		if want, has := template.Typed().Spec.Containers[0].Image, pod.Spec.Containers[0].Image; want != fixture.Plain.Replace(has) {
			return fmt.Sprintf("%s is %s with %s", pod.Name, label, has)
		}
		if e.alive && healthy(pod) && e.aboutToRestart(pod) {
			return pod.Name + " is Ready with the container that it had before its patch"
		}
	}
	return ""
}

func (e *ensemble) ready() int {
	ready := 0
	for _, pod := range e.Fleet.Seen.Pods {
		if healthy(pod) {
			ready++
		}
	}
	return ready
}

// until lets them act until the update is complete.
func (e *ensemble) until(most int, each func() string) string {
	for range most {
		e.act()
		if wrong := e.check() + each(); wrong != "" {
			return wrong
		}
		if e.complete() == "" {
			return ""
		}
	}
	return "the update never ends: " + e.complete()
}

// forEnsembles runs a scenario with many seeds: even ones are OrderedReady, odd ones Parallel.
func forEnsembles(t *testing.T, scenario func(e *ensemble) string) {
	t.Helper()
	runSeeds(t, func(seed int64, _ bool) outcome {
		e := newEnsemble(t, uint64(seed))
		wrong := scenario(e)
		return outcome{wrong, "", e.traces}
	})
}

// TestStatefulSetsStayPut: with a living manager no pod is deleted, and no more than one is unavailable.
func TestStatefulSetsStayPut(t *testing.T) {
	forEnsembles(t, func(e *ensemble) string {
		edits := []string{"v2", "v3", "v1"}[:1+e.random.IntN(3)]
		for _, image := range edits[:len(edits)-1] {
			e.Edit(fixture.App{Image: image})
			for range e.random.IntN(60) {
				e.act()
			}
		}
		e.Edit(fixture.App{Image: edits[len(edits)-1]})
		return e.until(3000, func() string {
			if len(e.deleted) > 0 {
				return fmt.Sprintf("deleted: %q", e.deleted)
			}
			if e.ready() < 2 {
				return fmt.Sprintf("%d are Ready", e.ready())
			}
			return ""
		})
	})
}

// TestStatefulSetsScaleMeanwhile: scaling is not held, and the update goes on.
func TestStatefulSetsScaleMeanwhile(t *testing.T) {
	forEnsembles(t, func(e *ensemble) string {
		e.Edit(fixture.App{Image: "v2"})
		for _, replicas := range []int32{5, 2} {
			for range e.random.IntN(60) {
				e.act()
			}
			*e.StatefulSet.Spec.Replicas = replicas
		}
		return e.until(3000, func() string {
			if len(e.deleted) > 0 {
				return fmt.Sprintf("deleted: %q", e.deleted)
			}
			return ""
		})
	})
}

// TestStatefulSetsWithoutManagers: all managers are killed for good at any moment, also between two writes of one plan. The native
// controller ends the update, and takes no second pod meanwhile. Under OrderedReady that is so whatever other clients write to the pods. It
// takes one too many only if a pod was patched and its kubelet had yet to stop the old container: without a webhook the kubelet reports
// that pod as Ready just before.
func TestStatefulSetsWithoutManagers(t *testing.T) {
	forEnsembles(t, func(e *ensemble) string {
		if e.StatefulSet.Ordered() {
			e.others = append(e.others, e.user)
		}
		e.Edit([]fixture.App{{Image: "v2"}, {Image: "v1", Restarted: "1"}}[e.random.IntN(2)])
		for range e.random.IntN(120) {
			e.act()
		}
		e.stayput(e.random.IntN(3))
		e.alive = false
		least := 2
		if slices.ContainsFunc(e.Fleet.Seen.Pods, e.aboutToRestart) {
			least = 1
		}
		e.trace("all managers are killed")
		return e.until(5000, func() string {
			if e.ready() < least {
				return fmt.Sprintf("%d are Ready", e.ready())
			}
			return ""
		})
	})
}

// aboutToRestart reports whether the pod was patched, and still runs its old container.
func (e *ensemble) aboutToRestart(pod *corev1.Pod) bool {
	return e.Fleet.Started(pod, "app") != pod.Spec.Containers[0].Image
}

// TestStatefulSetsWithoutManagersWhileOut: all managers are killed for good while a pod is out of service.
func TestStatefulSetsWithoutManagersWhileOut(t *testing.T) {
	runs, killed := 0, 0
	runSeeds(t, func(seed int64, _ bool) outcome {
		runs++
		e := newEnsemble(t, uint64(seed))
		e.others = append(e.others, e.user)
		e.Edit([]fixture.App{{Image: "v2"}, {Image: "v1", Restarted: "1"}}[e.random.IntN(2)])
		for more := e.random.IntN(3); more >= 0 && e.complete() != ""; more-- {
			e.untilOut()
		}
		for range e.random.IntN(6) {
			e.act()
		}
		if slices.ContainsFunc(e.Fleet.Seen.Pods, readiness.Out) {
			killed++
		}
		e.alive = false
		e.trace("all managers are killed")
		return outcome{e.until(3000, func() string { return "" }), "", e.traces}
	})
	if runs > 100 && killed < runs/3 {
		t.Errorf("a pod was out of service in only %d of %d runs", killed, runs)
	}
}

// untilOut lets them act until a pod is out of service.
func (e *ensemble) untilOut() {
	for range 200 {
		if e.act(); slices.ContainsFunc(e.Fleet.Seen.Pods, readiness.Out) {
			return
		}
	}
}

// TestStatefulSetsUndoABadImage: with either policy the pod with the bad image gets back the good one, and no pod is deleted.
func TestStatefulSetsUndoABadImage(t *testing.T) {
	forEnsembles(t, func(e *ensemble) string {
		e.Edit(fixture.App{Image: "bad"})
		for range 40 + e.random.IntN(100) {
			e.act()
		}
		e.Edit(fixture.App{Image: "v1"})
		return e.until(3000, func() string {
			if len(e.deleted) > 0 {
				return fmt.Sprintf("deleted: %q", e.deleted)
			}
			return ""
		})
	})
}

// part sets the partition and the first ordinal of the spec.
func (e *ensemble) part(partition, first int) {
	e.partition, e.first = partition, first
	fixture.Rolling(int32(partition), "")(e.Members)
	e.StatefulSet.Spec.Ordinals.Start = int32(first)
	e.trace("user: partition %d, ordinals from %d on", partition, first)
}

// kept returns the pods that the partition keeps natively: the lowest ones, unless they have been updated or are about to be.
func (e *ensemble) kept() (names []string) {
	for _, pod := range e.Fleet.Seen.Pods {
		index, label := e.index(pod), pod.Labels[inplace.LabelRevisionHash]
		if index >= 0 && index < min(e.partition, 3) && label == e.StatefulSet.Status.CurrentRevision {
			names = append(names, pod.Name)
		}
	}
	return names
}

// TestStatefulSetsAtAPartition: wherever the ordinals begin, and when they move in the middle of an update, pods that the partition keeps
// natively keep their revision, and all others get the new one.
func TestStatefulSetsAtAPartition(t *testing.T) {
	forEnsembles(t, func(e *ensemble) string {
		e.part(1+e.random.IntN(4), e.first)
		e.Edit(fixture.App{Image: "v2"})
		for range e.random.IntN(60) {
			e.act()
		}
		e.part(e.partition, max(0, e.first-1+e.random.IntN(3)))
		kept := e.kept()
		as := func() string {
			for _, name := range kept {
				if i := slices.IndexFunc(e.Fleet.Seen.Pods, func(pod *corev1.Pod) bool { return pod.Name == name }); i < 0 ||
					e.Fleet.Seen.Pods[i].Spec.Containers[0].Image != "v1" {
					return name + " is not what the partition keeps"
				}
			}
			if len(e.deleted) > 0 {
				return fmt.Sprintf("deleted: %q", e.deleted)
			}
			return ""
		}
		if wrong := e.until(3000, as); wrong != "" {
			return wrong
		}
		for range 60 {
			if e.act(); as() != "" {
				return as()
			}
		}
		kept = nil
		e.part(0, e.first)
		return e.until(3000, as)
	})
}

// asks writes a request to a pod, now and then.
func (e *ensemble) asks() {
	if len(e.Fleet.Seen.Pods) == 0 || e.random.IntN(6) > 0 {
		return
	}
	pod := e.Fleet.Seen.Pods[e.random.IntN(len(e.Fleet.Seen.Pods))]
	e.trace("user: asks for a restart of %s", pod.Name)
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, inplace.AnnotationRestartContainers, "app")
}

// unanswered returns a pod that still has a request, or says that one waits; empty if none does.
func (e *ensemble) unanswered() string {
	for _, pod := range e.Fleet.Seen.Pods {
		if podstate.MayAnswer(pod, inplace.ModeInPlace) {
			return fmt.Sprintf("%s has annotations %v", pod.Name, pod.Annotations)
		}
	}
	return ""
}

// TestStatefulSetsMeetRequests: whatever else happens, no pod is deleted, no more than one is unavailable, and each request has its answer.
func TestStatefulSetsMeetRequests(t *testing.T) {
	forEnsembles(t, func(e *ensemble) string {
		e.others = append(e.others, e.asks)
		kept := func() string {
			if len(e.deleted) > 0 || e.ready() < 2 {
				return fmt.Sprintf("deleted: %q, %d are Ready", e.deleted, e.ready())
			}
			return e.check()
		}
		for _, image := range []string{"v2", "v1"}[:e.random.IntN(3)] {
			for range e.random.IntN(120) {
				if e.act(); kept() != "" {
					return kept()
				}
			}
			e.Edit(fixture.App{Image: image})
		}
		e.others = nil
		for range 5000 {
			if e.act(); kept() != "" {
				return kept()
			}
			if e.unanswered() == "" && e.complete() == "" {
				return ""
			}
		}
		return e.unanswered() + e.complete()
	})
}

// TestStatefulSetsWithoutManagersDuringRequests: all managers are killed for good at any moment. Every pod serves in the end.
func TestStatefulSetsWithoutManagersDuringRequests(t *testing.T) {
	forEnsembles(t, func(e *ensemble) string {
		e.others = append(e.others, e.asks, e.user)
		for range e.random.IntN(60) {
			e.act()
		}
		e.untilOut()
		e.stayput(e.random.IntN(3))
		e.alive, e.others = false, []func(){e.user}
		e.trace("all managers are killed")
		return e.until(3000, func() string { return "" })
	})
}
