package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
)

// kubelet runs all pods. It acts on a cache that lags, and writes observedGeneration before it kills. Beside what it does stands the line
// of Kubernetes 1.36.3 that does it. TestKubeletLines looks them up.
type kubelet struct {
	*world
	pods  *informer[*corev1.Pod]
	state map[string]map[string]*container
	// said is the last status that it generated for each pod, with its own conditions only, and their times. It writes a status that differs
	// from the last one: pkg/kubelet/status/status_manager.go:849 updateStatusInternal.
	said map[string]corev1.PodStatus
	// compared is when it last compared what is stored with what it said, which it does every 10 s:
	// pkg/kubelet/status/status_manager.go:1075 syncBatch.
	compared map[string]time.Time
	// hasty says that a container may start in the sync in which the old one has stopped, and is ready at once if it has no readiness probe.
	// Then the pod may never be reported as not Ready. In a lockstep it is not. pkg/kubelet/kuberuntime/kuberuntime_manager.go:1450 SyncPod
	// kills and starts in one call; pkg/kubelet/prober/prober_manager.go:332 UpdatePodStatus says ready where no worker probes.
	hasty bool
	ids   int
	// announced are pods of the last status whose containers do not run yet as their spec says, because the status is written first:
	// pkg/kubelet/kubelet.go:2019 SyncPod.
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
	return &kubelet{world: w, pods: w.pods.informer(), state: map[string]map[string]*container{},
		said: map[string]corev1.PodStatus{}, compared: map[string]time.Time{},
		sizes: map[string]map[string]edit.Amounts{}, announced: map[string]*corev1.Pod{}}
}

// pass lets time pass in which controllers do nothing, as after a failure. Kubelets still read all that is stored, because no kubelet lags
// for that long.
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
	if pod.DeletionTimestamp != nil { // pkg/kubelet/status/status_manager.go:1241 canBeDeleted
		if _, exists := k.world.pods.objects[name]; exists {
			remove(k.world, k.world.pods, name)
		}
		delete(k.state, name)
		delete(k.announced, name)
		delete(k.said, name)
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
	k.reconcile(pod)
	if announced := k.announced[name]; announced != nil {
		delete(k.announced, name)
		k.syncContainers(announced)
	}
	k.report(pod)
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
// size. pkg/kubelet/kuberuntime/kuberuntime_manager.go:714 computePodResizeAction.
func (k *kubelet) give(pod string, want corev1.Container, gets edit.Amounts) {
	switch c := k.state[pod][want.Name]; {
	case len(want.ResizePolicy) == 0 || c == nil || !c.running:
		k.sizes[pod][want.Name] = gets
	case k.sizes[pod][want.Name] != gets && c.dying.IsZero():
		k.kill(pod, want.Name, c)
	}
}

// kill lets the container end within its grace period: pkg/kubelet/kuberuntime/kuberuntime_container.go:861 killContainer.
func (k *kubelet) kill(pod, name string, c *container) {
	k.logf("kubelet: kill %s/%s, which runs %s", pod, name, c.image)
	k.rules.killed(k.world, pod, name)
	c.dying = k.now.Add(cmp.Or(k.stops, time.Duration(k.rng.Intn(300))*time.Millisecond))
}

// whyNot returns why a container of the pod does not get these resources: pkg/kubelet/allocation/allocation_manager.go:563
// handlePodResourcesResize.
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

// resizing sets the condition that a kubelet has for a resize: pkg/kubelet/kubelet_pods.go:1877 determinePodResizeStatus.
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

// syncContainer is one step for one container: kill, then pull and start, then readiness. Which of them is what
// pkg/kubelet/kuberuntime/kuberuntime_manager.go:1175 computePodActions says.
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
			if k.hasty && k.rng.Intn(2) == 0 && k.startable(c, want) {
				k.start(pod, want, c) // in the same sync, so that its status never says that none runs
			}
		}
	case c.running && c.image != want.Image:
		k.kill(pod.Name, want.Name, c)
	case !c.running && k.startable(c, want):
		k.start(pod, want, c)
	case c.running && !c.ready && !strings.Contains(c.image, "crash") && k.now.Sub(c.started) > 300*time.Millisecond:
		c.ready = true
	case c.running && strings.Contains(c.image, "crash") && k.rng.Intn(4) == 0:
		c.running, c.backOff = false, k.now.Add(time.Second)
	}
}

// startable reports whether the container can start: pkg/kubelet/kuberuntime/kuberuntime_manager.go:1908 doBackOff.
func (k *kubelet) startable(c *container, want corev1.Container) bool {
	return !k.now.Before(c.backOff) && !strings.Contains(want.Image, "bad")
}

// start starts the container: pkg/kubelet/kuberuntime/kuberuntime_container.go:200 startContainer. One that works and has no readiness
// probe may be ready as soon as it runs.
func (k *kubelet) start(pod *corev1.Pod, want corev1.Container, c *container) {
	k.ids++
	*c = container{id: fmt.Sprintf("id-%d", k.ids), image: want.Image, variables: fixture.Variables(pod, want), running: true,
		started: k.now, ended: c.ended, ready: k.hasty && want.ReadinessProbe == nil && !strings.Contains(want.Image, "crash")}
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

// restart lets a kubelet forget what it said of one pod.
func (k *kubelet) restart() {
	if names := slices.Sorted(maps.Keys(k.said)); len(names) > 0 {
		name := names[k.rng.Intn(len(names))]
		k.logf("the kubelet of %s restarts", name)
		delete(k.said, name)
	}
}

// report generates the status of a pod, and writes it if it is not what was said last.
func (k *kubelet) report(cached *corev1.Pod) {
	said, known := k.said[cached.Name]
	if !known {
		said = cached.Status
	}
	status := k.generate(cached, said)
	k.said[cached.Name] = status
	if !known || !sameReport(said, status) {
		k.write(cached.Name, status)
	}
}

// reconcile writes what was said last if something else is stored, as far as the cache has it:
// pkg/kubelet/status/status_manager.go:1269 needsReconcile.
func (k *kubelet) reconcile(cached *corev1.Pod) {
	if _, known := k.compared[cached.Name]; !known {
		k.compared[cached.Name] = k.now.Add(-time.Duration(k.rng.Intn(10_000)) * time.Millisecond)
	}
	if k.now.Sub(k.compared[cached.Name]) < 10*time.Second {
		return
	}
	k.compared[cached.Name] = k.now
	if said, known := k.said[cached.Name]; known && !sameReport(cached.Status, said) {
		k.logf("kubelet: what is stored of %s is not what it said", cached.Name)
		k.write(cached.Name, said)
	}
}

// generate returns the status that follows from its cache and the runtime: pkg/kubelet/kubelet_pods.go:1891 generateAPIPodStatus. Times of
// conditions come from what it said before.
func (k *kubelet) generate(cached *corev1.Pod, said corev1.PodStatus) corev1.PodStatus {
	status := corev1.PodStatus{Phase: corev1.PodRunning, ObservedGeneration: cached.Generation, Conditions: own(said.Conditions)}
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
	// pkg/kubelet/status/generate.go:50 GenerateContainersReadyCondition
	k.setPodCondition(&status, cached, corev1.ContainersReady, containersReady, "ContainersNotReady")
	why := "ContainersNotReady"
	if containersReady {
		why = "ReadinessGatesNotReady"
	}
	// pkg/kubelet/status/generate.go:126 GeneratePodReadyCondition
	k.setPodCondition(&status, cached, corev1.PodReady, containersReady && gatesOpen(cached), why)
	return status
}

// gatesOpen reports whether all readiness gates of users are.
func gatesOpen(pod *corev1.Pod) bool {
	shut := func(gate corev1.PodReadinessGate) bool { return !apps.IsTrue(pod, gate.ConditionType) }
	return !slices.ContainsFunc(pod.Spec.ReadinessGates, shut)
}

// byKubelet is pkg/kubelet/types/pod_status.go:36 PodConditionByKubelet, as far as these conditions are modelled.
func byKubelet(kind corev1.PodConditionType) bool {
	return slices.Contains([]corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady, corev1.PodResizePending,
		corev1.PodResizeInProgress}, kind)
}

// own returns the conditions that are the kubelet's.
func own(conditions []corev1.PodCondition) []corev1.PodCondition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c corev1.PodCondition) bool { return !byKubelet(c.Type) })
}

// write patches what differs from the stored status, of which it leaves the conditions of others:
// pkg/kubelet/status/status_manager.go:1359 mergePodStatus. A webhook of Stayput may be asked.
func (k *kubelet) write(name string, status corev1.PodStatus) {
	live, exists := k.world.pods.objects[name]
	if !exists {
		return
	}
	sent := live.DeepCopy()
	sent.Status = *status.DeepCopy()
	sent.Status.Conditions = append(slices.DeleteFunc(slices.Clone(live.Status.Conditions),
		func(c corev1.PodCondition) bool { return byKubelet(c.Type) }), sent.Status.Conditions...)
	if equality.Semantic.DeepEqual(live.Status, sent.Status) {
		return
	}
	k.mutate(live, sent)
	stored := put(k.world, k.world.pods, sent)
	k.rules.reported(k.world, live, stored)
	k.logf("kubelet: %s generation %d of %d %s says ready %v; stored: ready %v out %v", name, status.ObservedGeneration, stored.Generation,
		status.ContainerStatuses[0].Image, isTrue(status, corev1.PodReady), apps.IsTrue(stored, corev1.PodReady), readiness.Out(stored))
}

func isTrue(status corev1.PodStatus, kind corev1.PodConditionType) bool {
	return apps.IsTrue(&corev1.Pod{Status: status}, kind)
}

// status is what pkg/kubelet/kubelet_pods.go:2279 convertToAPIContainerStatuses says of the container.
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

// setPodCondition sets one of the kubelet's conditions: pkg/kubelet/status/status_manager.go:1025 updateLastTransitionTime.
func (k *kubelet) setPodCondition(
	status *corev1.PodStatus, cached *corev1.Pod, kind corev1.PodConditionType, value bool, why string,
) {
	want := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, Reason: why, ObservedGeneration: cached.Generation,
		LastTransitionTime: metav1.NewTime(k.clock().Truncate(time.Second))}
	if value {
		want.Status, want.Reason = corev1.ConditionTrue, ""
	}
	if said := apps.Condition(&corev1.Pod{Status: *status}, kind); said != nil && said.Status == want.Status {
		want.LastTransitionTime = said.LastTransitionTime
	}
	status.Conditions = readiness.WithCondition(status.Conditions, want)
}

// sameReport is pkg/kubelet/status/status_manager.go:230 isPodStatusByKubeletEqual: of the stored conditions those of the kubelet count,
// without their times.
func sameReport(stored, said corev1.PodStatus) bool {
	for _, is := range own(stored.Conditions) {
		says := apps.Condition(&corev1.Pod{Status: said}, is.Type)
		if says == nil || says.Status != is.Status || says.Reason != is.Reason || says.Message != is.Message {
			return false
		}
	}
	stored.Conditions = said.Conditions
	return equality.Semantic.DeepEqual(stored, said)
}
