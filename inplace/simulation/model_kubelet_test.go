package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
)

// kubelet runs all pods. It acts on a cache that lags, and writes observedGeneration before it kills.
type kubelet struct {
	*world
	pods  *informer[*corev1.Pod]
	state map[string]map[string]*container
	// gates are the gates in the last sync of each pod: SetContainerReadiness in pkg/kubelet/status/status_manager.go computes Ready from
	// these.
	gates map[string]bool
	// said is the last status that it generated for each pod, and compared is when it was last compared with the stored one. It writes only a
	// status that differs from the last (updateStatusInternal), and every 10 s one that differs from the stored one (needsReconcile).
	said     map[string]corev1.PodStatus
	compared map[string]time.Time
	// retracts is when it reports again that containers are not ready: see readiness/ahead.go. It does so once after a patch: retracted
	// has the generations, and retractedAt when it last did so.
	retracts    map[string]time.Time
	retracted   map[string]int64
	retractedAt map[string]time.Time
	// lags says that it may use old gates and skip writes, as in gates and said. In a lockstep it does not.
	lags bool
	ids  int
	// announced are pods of the last status whose containers do not run yet as their spec says: SyncPod in pkg/kubelet/kubelet.go writes the
	// status first.
	announced map[string]*corev1.Pod
	// sizes are the CPU and memory that containers have got, by pod and container.
	sizes map[string]map[string]edit.Amounts
	// skew is how far its clock is ahead of the leader's.
	skew time.Duration
	// short says that its nodes have no capacity for larger resources.
	short bool
	// stops is how long containers take to stop; if zero, a moment.
	stops time.Duration
	// cramped is a CPU request that is infeasible on the node of a pod, by the name of the pod.
	cramped map[string]string
}

// container is a container in the runtime. An image with "bad" in its name cannot be pulled, one with "crash" never becomes ready.
type container struct {
	id, image string
	// variables are those that it was started with.
	variables string
	started   time.Time
	running   bool
	ready     bool
	// dying is when a container that is being killed ends.
	dying time.Time
	// backOff is when it starts again after a crash.
	backOff time.Time
	// ended is how the container before it ended.
	ended *corev1.ContainerStateTerminated
}

func newKubelet(w *world) *kubelet {
	return &kubelet{world: w, pods: w.pods.informer(), state: map[string]map[string]*container{}, gates: map[string]bool{},
		said: map[string]corev1.PodStatus{}, compared: map[string]time.Time{}, retracts: map[string]time.Time{}, retracted: map[string]int64{},
		retractedAt: map[string]time.Time{},
		sizes:       map[string]map[string]edit.Amounts{}, announced: map[string]*corev1.Pod{}}
}

// pass lets time pass in which controllers do nothing, as after a failure. Kubelets still read all that is stored, because no kubelet lags
// for longer than it takes to see a gate.
func (w *world) pass() {
	w.kubelet.pods.advance(len(w.pods.log))
	for _, name := range slices.Sorted(maps.Keys(w.kubelet.pods.objects)) {
		w.kubelet.run(name)
	}
	w.now = w.now.Add(time.Duration(w.rng.Intn(180)) * time.Second)
	w.logf("time passes")
}

// clock returns the time of what it reports.
func (k *kubelet) clock() time.Time { return k.now.Add(k.skew) }

func (k *kubelet) run(name string) {
	pod := k.pods.objects[name]
	if pod == nil || k.pull.IsDown(pod.Spec.NodeName) {
		return
	}
	if pod.DeletionTimestamp != nil {
		if _, exists := k.world.pods.objects[name]; exists {
			remove(k.world, k.world.pods, name)
		}
		delete(k.state, name)
		delete(k.announced, name)
		return
	}
	if pod.Spec.NodeName == "" {
		if k.roomy() {
			if _, err := alter(k.world, k.world.pods, name, "", k.schedule); err != nil {
				k.violated("schedule: %v", err)
			}
		} else if apps.Condition(pod, corev1.PodScheduled) == nil {
			if _, err := alter(k.world, k.world.pods, name, "", k.unschedulable); err != nil {
				k.violated("schedule: %v", err)
			}
		}
		return
	}
	if k.state[name] == nil {
		k.state[name], k.sizes[name] = map[string]*container{}, map[string]edit.Amounts{}
		for _, created := range pod.Spec.Containers {
			k.sizes[name][created.Name] = edit.AmountsOf(created.Resources)
		}
	}
	if announced := k.announced[name]; announced != nil {
		delete(k.announced, name)
		k.syncContainers(announced)
	}
	k.writeStatus(pod)
	if k.rng.Intn(3) == 0 {
		k.announced[name] = pod // other processes act between the status and the change that it announces
		return
	}
	k.syncContainers(pod)
}

// syncContainers makes the containers run as the spec of that pod says. The stored pod may have been patched since.
func (k *kubelet) syncContainers(pod *corev1.Pod) {
	name := pod.Name
	for _, want := range fixture.Living(pod.Spec) {
		k.syncContainer(pod, want)
		if gets := edit.AmountsOf(want.Resources); k.whyNot(name, gets) == "" {
			k.give(name, want, gets)
		}
	}
}

// give resizes the container of the pod, with a restart if its resizePolicy asks for one. A container that does not run starts with the new
// size.
func (k *kubelet) give(pod string, want corev1.Container, gets edit.Amounts) {
	switch c := k.state[pod][want.Name]; {
	case len(want.ResizePolicy) == 0 || c == nil || !c.running:
		k.sizes[pod][want.Name] = gets
	case k.sizes[pod][want.Name] != gets && c.dying.IsZero():
		k.kill(pod, want.Name, c)
	}
}

func (k *kubelet) kill(pod, name string, c *container) {
	k.logf("kubelet: kill %s/%s, which runs %s", pod, name, c.image)
	k.rules.killed(k.world, pod, name)
	c.dying = k.now.Add(cmp.Or(k.stops, time.Duration(k.rng.Intn(300))*time.Millisecond))
}

// whyNot returns why a container of the pod does not get these resources, as a kubelet calls it.
func (k *kubelet) whyNot(pod string, gets edit.Amounts) string {
	switch {
	case gets.CPURequest == fixture.TooMuch, gets.CPURequest != "" && gets.CPURequest == k.cramped[pod]:
		return corev1.PodReasonInfeasible
	case k.short:
		return corev1.PodReasonDeferred
	}
	return ""
}

// sized reports whether the containers of the pod have got the resources in its spec.
func (k *kubelet) sized(pod *corev1.Pod) bool {
	return !slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		got, known := k.sizes[pod.Name][c.Name]
		return known && got != edit.AmountsOf(c.Resources)
	})
}

// resizing sets the condition that a kubelet has for a resize.
func (k *kubelet) resizing(status *corev1.PodStatus, cached *corev1.Pod) {
	pending := func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodResizePending || c.Type == corev1.PodResizeInProgress
	}
	before := slices.IndexFunc(status.Conditions, pending)
	next := corev1.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(k.clock().Truncate(time.Second)),
		ObservedGeneration: cached.Generation}
	if before >= 0 {
		next.LastTransitionTime = status.Conditions[before].LastTransitionTime
	}
	status.Conditions = slices.DeleteFunc(status.Conditions, pending)
	for _, c := range cached.Spec.Containers {
		if why := k.whyNot(cached.Name, edit.AmountsOf(c.Resources)); why != "" {
			next.Type, next.Reason, next.Message = corev1.PodResizePending, why, "Node didn't have enough resource: cpu"
		}
	}
	if !k.sized(cached) {
		status.Conditions = append(status.Conditions, next)
	}
}

// syncContainer is one step of SyncPod for one container: kill, then pull and start, then readiness.
func (k *kubelet) syncContainer(pod *corev1.Pod, want corev1.Container) {
	c := k.state[pod.Name][want.Name]
	if c == nil {
		c = &container{}
		k.state[pod.Name][want.Name] = c
	}
	switch {
	case !c.dying.IsZero():
		if !k.now.Before(c.dying) {
			c.running, c.ready, c.dying = false, false, time.Time{}
			c.ended = &corev1.ContainerStateTerminated{ContainerID: c.id, FinishedAt: metav1.NewTime(k.now.Truncate(time.Second))}
		}
	case c.running && c.image != want.Image:
		k.kill(pod.Name, want.Name, c)
	case !c.running && !k.now.Before(c.backOff) && !strings.Contains(want.Image, "bad"):
		k.ids++
		*c = container{id: fmt.Sprintf("id-%d", k.ids), image: want.Image, variables: fixture.Variables(pod, want), running: true,
			started: k.now, ended: c.ended}
	case c.running && !c.ready && !strings.Contains(c.image, "crash") && k.now.Sub(c.started) > 300*time.Millisecond:
		c.ready = true
	case c.running && strings.Contains(c.image, "crash") && k.rng.Intn(4) == 0:
		c.running, c.backOff = false, k.now.Add(time.Second)
	}
}

func (k *kubelet) crash() {
	names := slices.Sorted(maps.Keys(k.state))
	if len(names) == 0 {
		return
	}
	name := names[k.rng.Intn(len(names))]
	k.logf("%s crashes", name)
	for _, c := range k.state[name] {
		if c.running && c.dying.IsZero() {
			c.running, c.ready = false, false
		}
	}
}

// writeStatus writes the status that the kubelet generates from its cache and the runtime. It patches only the fields it owns.
func (k *kubelet) writeStatus(cached *corev1.Pod) {
	live, exists := k.world.pods.objects[cached.Name]
	if !exists {
		return
	}
	status := corev1.PodStatus{Phase: corev1.PodRunning, ObservedGeneration: cached.Generation,
		Conditions: slices.Clone(live.Status.Conditions)}
	containersReady := true
	for i, want := range fixture.Living(cached.Spec) {
		c := k.state[cached.Name][want.Name]
		if c == nil {
			c = &container{}
		}
		containersReady = containersReady && c.ready
		list := &status.ContainerStatuses
		if i >= len(cached.Spec.Containers) {
			list = &status.InitContainerStatuses
		}
		reported := c.status(want, k.skew)
		reported.Resources = new(k.sizes[cached.Name][want.Name].Requirements())
		*list = append(*list, reported)
	}
	k.resizing(&status, cached)
	if len(cached.Status.ContainerStatuses) == 0 && !containersReady {
		status.Phase = corev1.PodPending
	}
	ready := containersReady && k.gateOpen(cached)
	k.setPodCondition(&status, corev1.ContainersReady, containersReady, "ContainersNotReady")
	why := "ContainersNotReady"
	if containersReady {
		why = readiness.ReasonGatesNotReady
	}
	k.setPodCondition(&status, corev1.PodReady, ready, why)
	if !ready && containersReady {
		apps.Condition(&corev1.Pod{Status: status}, corev1.PodReady).Message = whyShut
	}
	if sameStatus(live.Status, status) || k.swallows(cached, status) {
		return
	}
	stored, err := alter(k.world, k.world.pods, cached.Name, "", func(pod *corev1.Pod) {
		pod.Status = status
		pod.Status.Conditions = k.stored(live, pod, readiness.KubeletWriter)
	})
	if err == nil {
		if readiness.Closed(live) && !readiness.Closed(stored) {
			k.rules.reopened(k.world, stored)
		}
		k.rules.readySet(k.world, cached.Name, stored)
		if k.lags && cached.Spec.Containers[0].ReadinessProbe != nil && k.retracted[cached.Name] < stored.Generation &&
			stored.Annotations[inplace.AnnotationMove] != "" &&
			apps.IsTrue(stored, corev1.PodReady) && !apps.IsTrue(live, corev1.PodReady) && k.rng.Intn(2) == 0 {
			k.retracted[cached.Name] = stored.Generation
			k.retracts[cached.Name] = k.now.Add(time.Duration(k.rng.Int63n(int64(readiness.Lasts / 2))))
		}
		k.logf("kubelet: %s generation %d ready %v/%v %s; stored: gate %v ready %v", cached.Name, cached.Generation, containersReady, ready,
			status.ContainerStatuses[0].Image, apps.IsTrue(stored, inplace.ConditionServing), apps.IsTrue(stored, corev1.PodReady))
	}
}

// retract writes the readiness that was known before a probe had answered.
func (k *kubelet) retract() {
	for _, name := range slices.Sorted(maps.Keys(k.retracts)) {
		if k.now.Before(k.retracts[name]) {
			continue
		}
		delete(k.retracts, name)
		pod := k.world.pods.objects[name]
		if pod == nil || pod.DeletionTimestamp != nil || !apps.IsTrue(pod, corev1.PodReady) {
			continue
		}
		for _, c := range k.state[name] {
			c.ready = false
		}
		k.logf("kubelet: %s is not ready after all", name)
		k.retractedAt[name] = k.now
		k.rules.taken(k.world, pod)
		k.writeStatus(k.pods.objects[name])
		// Stayput's watch delivers it before readiness.Lasts is over.
		k.world.stayput.pods.advance(len(k.world.pods.log))
		k.world.stayput.stale = true
	}
}

// swallows reports whether the kubelet has generated the same status before, and so writes nothing, whatever was stored since. It does
// write if it has seen that another Ready is stored (NeedToReconcilePodReadiness), and when it compares again. In a lockstep it always
// writes.
func (k *kubelet) swallows(cached *corev1.Pod, status corev1.PodStatus) bool {
	said, before := k.said[cached.Name]
	k.said[cached.Name] = *status.DeepCopy()
	if !k.lags || !before || k.now.Sub(k.compared[cached.Name]) >= 10*time.Second {
		k.compared[cached.Name] = k.now
		return false
	}
	ready, stored := apps.Condition(&corev1.Pod{Status: status}, corev1.PodReady), apps.Condition(cached, corev1.PodReady)
	finds := stored != nil && (stored.Status != ready.Status || stored.Message != ready.Message)
	return !finds && sameStatus(byKubelet(said), byKubelet(status))
}

// byKubelet returns the status without the conditions of other writers.
func byKubelet(status corev1.PodStatus) corev1.PodStatus {
	status.Conditions = slices.DeleteFunc(slices.Clone(status.Conditions),
		func(c corev1.PodCondition) bool { return c.Type == inplace.ConditionServing })
	return status
}

// whyShut is its message about Stayput's gate.
const whyShut = `the status of pod readiness gate "stayput.dev/serving" is not "True", but False`

// gateOpen reports whether the pod's gate was open in the last sync. At random it is the current gate, as if a sync had just taken place.
func (k *kubelet) gateOpen(pod *corev1.Pod) bool {
	open := !readiness.Gated(pod) || apps.IsTrue(pod, inplace.ConditionServing)
	last, known := k.gates[pod.Name]
	k.gates[pod.Name] = open
	if k.lags && known && k.rng.Intn(2) == 0 {
		return last
	}
	return open
}

func (c *container) status(want corev1.Container, skew time.Duration) corev1.ContainerStatus {
	// The image in a runtime's status does not show which of its names the spec has.
	status := corev1.ContainerStatus{Name: want.Name, Image: fixture.Plain.Replace(c.image), ContainerID: c.id, Ready: c.ready,
		LastTerminationState: corev1.ContainerState{Terminated: c.ended}}
	if c.image == "" {
		status.Image = want.Image
	} else {
		status.ImageID = "sha256:" + strings.TrimSuffix(status.Image, "-retag")
	}
	if c.running {
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.started.Add(skew).Truncate(time.Second))}
	} else {
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	}
	return status
}

func (k *kubelet) setPodCondition(status *corev1.PodStatus, kind corev1.PodConditionType, value bool, why string) {
	want := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, Reason: why,
		LastTransitionTime: metav1.NewTime(k.clock().Truncate(time.Second))}
	if value {
		want.Status, want.Reason = corev1.ConditionTrue, ""
	}
	for i, c := range status.Conditions {
		if c.Type == kind {
			if c.Status == want.Status {
				want.LastTransitionTime = c.LastTransitionTime
			}
			status.Conditions[i] = want
			return
		}
	}
	status.Conditions = append(status.Conditions, want)
}

func sameStatus(a, b corev1.PodStatus) bool {
	same := func(a, b corev1.ContainerStatus) bool {
		return sameSize(a.Resources, b.Resources) && a.ContainerID == b.ContainerID && a.Image == b.Image && a.Ready == b.Ready &&
			(a.State.Running == nil) == (b.State.Running == nil)
	}
	sameCondition := func(a, b corev1.PodCondition) bool {
		return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
	}
	return a.Phase == b.Phase && a.ObservedGeneration == b.ObservedGeneration &&
		slices.EqualFunc(a.ContainerStatuses, b.ContainerStatuses, same) && slices.EqualFunc(a.InitContainerStatuses, b.InitContainerStatuses,
		same) && slices.EqualFunc(a.Conditions, b.Conditions, sameCondition)
}

func sameSize(a, b *corev1.ResourceRequirements) bool {
	return (a == nil) == (b == nil) && (a == nil || edit.AmountsOf(*a) == edit.AmountsOf(*b))
}
