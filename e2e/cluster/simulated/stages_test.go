// Package simulated tests with kwok's own code, without a cluster, which stages kwok plays on simulated nodes.
package simulated

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
)

const gate = "example.com/checked"

func TestNewPodBecomesReady(t *testing.T) {
	pod := newPlayer(t).settle(newPod(), "pod-start")
	if pod.Status.Phase != corev1.PodRunning || !isTrue(pod, corev1.PodReady) || !isTrue(pod, corev1.ContainersReady) {
		t.Errorf("phase %s, conditions %v; want Running and Ready", pod.Status.Phase, pod.Status.Conditions)
	}
	if pod.Status.ObservedGeneration != pod.Generation || pod.Status.PodIP == "" {
		t.Errorf("observedGeneration %d, IP %q; want %d and an address",
			pod.Status.ObservedGeneration, pod.Status.PodIP, pod.Generation)
	}
	for _, status := range append(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses[1]) {
		if status.State.Running == nil || status.ContainerID == "" || status.ImageID == "" || status.RestartCount != 0 {
			t.Errorf("container %+v, want it running for the first time", status)
		}
	}
	if setup := pod.Status.InitContainerStatuses[0]; setup.State.Terminated == nil {
		t.Errorf("init container %+v, want it completed", setup)
	}
}

func TestImageChangeRestartsOnlyThatContainer(t *testing.T) {
	player := newPlayer(t)
	before := player.settle(newPod(), "pod-start")
	edited := before.DeepCopy()
	edited.Generation++
	edited.Spec.Containers[0].Image = "app:v2"

	stopped := player.step(edited, "pod-stop")
	if isTrue(stopped, corev1.PodReady) || isTrue(stopped, corev1.ContainersReady) {
		t.Errorf("conditions %v of the stopped pod, want neither Ready nor ContainersReady", stopped.Status.Conditions)
	}
	if app := stopped.Status.ContainerStatuses[0]; app.State.Terminated == nil || app.Image != "app:v1" || app.RestartCount != 0 {
		t.Errorf("container %+v, want v1 terminated", app)
	}
	if stopped.Status.ObservedGeneration != edited.Generation {
		t.Errorf("observedGeneration %d, want %d", stopped.Status.ObservedGeneration, edited.Generation)
	}

	after := player.settle(stopped, "pod-start")
	was, is := before.Status.ContainerStatuses, after.Status.ContainerStatuses
	if is[0].Image != "app:v2" || is[0].RestartCount != 1 || is[0].ContainerID == was[0].ContainerID || is[0].ImageID == was[0].ImageID {
		t.Errorf("container %+v after the restart, %+v before", is[0], was[0])
	}
	if is[0].LastTerminationState.Terminated == nil {
		t.Error("no lastState of the container that was stopped")
	}
	if is[1].ContainerID != was[1].ContainerID || is[1].RestartCount != 0 {
		t.Errorf("the other container is %+v, was %+v", is[1], was[1])
	}
	if !isTrue(after, corev1.PodReady) || after.Status.PodIP != before.Status.PodIP {
		t.Errorf("conditions %v, IP %s; want Ready with IP %s", after.Status.Conditions, after.Status.PodIP, before.Status.PodIP)
	}
}

func TestSidecarRestartsInitContainerDoesNot(t *testing.T) {
	player := newPlayer(t)
	before := player.settle(newPod(), "pod-start")
	edited := before.DeepCopy()
	edited.Spec.InitContainers[0].Image = "setup:v2"
	edited.Spec.InitContainers[1].Image = "sidecar:v2"
	after := player.settle(edited, "pod-stop", "pod-start")
	setup, sidecar := after.Status.InitContainerStatuses[0], after.Status.InitContainerStatuses[1]
	if setup.Image != "setup:v1" || setup.RestartCount != 0 {
		t.Errorf("init container %+v, want it untouched", setup)
	}
	if sidecar.Image != "sidecar:v2" || sidecar.RestartCount != 1 {
		t.Errorf("sidecar %+v, want it restarted", sidecar)
	}
}

func TestReadyFollowsTheGate(t *testing.T) {
	player := newPlayer(t)
	gated := newPod()
	gated.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: gate}}
	pod := player.settle(gated, "pod-start")
	if isTrue(pod, corev1.PodReady) || !isTrue(pod, corev1.ContainersReady) {
		t.Fatalf("conditions %v without the gate's, want ContainersReady only", pod.Status.Conditions)
	}

	pod = player.settle(withGate(pod, corev1.ConditionTrue), "pod-sync")
	if !isTrue(pod, corev1.PodReady) {
		t.Fatalf("conditions %v with the gate open, want Ready", pod.Status.Conditions)
	}

	pod = player.settle(withGate(pod, corev1.ConditionFalse), "pod-sync")
	if isTrue(pod, corev1.PodReady) {
		t.Fatalf("conditions %v with the gate closed, want not Ready", pod.Status.Conditions)
	}

	pod.Spec.Containers[0].Image = "app:v2"
	pod = player.settle(pod, "pod-stop", "pod-start")
	if isTrue(pod, corev1.PodReady) || len(withGate(pod, corev1.ConditionFalse).Status.Conditions) != len(pod.Status.Conditions) {
		t.Errorf("conditions %v after a restart behind a closed gate, want the gate kept and not Ready", pod.Status.Conditions)
	}
}

// takenOut returns a copy of pod that Stayput has taken out of service.
func takenOut(pod *corev1.Pod) *corev1.Pod {
	result := pod.DeepCopy()
	for i := range result.Status.Conditions {
		if c := &result.Status.Conditions[i]; c.Type == corev1.PodReady {
			*c = corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "UpdatingInPlace", Message: "for a moment",
				ObservedGeneration: pod.Generation, LastTransitionTime: metav1.Now()}
		}
	}
	return result
}

func TestForeignReadyIsTakenBack(t *testing.T) {
	player := newPlayer(t)
	pod := takenOut(player.settle(newPod(), "pod-start"))
	if got := player.delay(pod); got != 10*time.Second {
		t.Errorf("it is taken back after %s, want 10s", got)
	}
	if pod = player.settle(pod, "pod-sync"); !isTrue(pod, corev1.PodReady) {
		t.Errorf("conditions %v, want Ready", pod.Status.Conditions)
	}
	expectNoWord(t, pod)
}

func TestPodOutOfServiceRestarts(t *testing.T) {
	player := newPlayer(t)
	pod := takenOut(player.settle(newPod(), "pod-start"))
	pod.Generation++
	pod.Spec.Containers[0].Image = "app:v2"
	stopped := player.step(pod, "pod-stop")
	if isTrue(stopped, corev1.PodReady) {
		t.Errorf("conditions %v of the stopped pod, want not Ready", stopped.Status.Conditions)
	}
	expectNoWord(t, stopped)
	if pod = player.settle(stopped, "pod-start"); !isTrue(pod, corev1.PodReady) {
		t.Errorf("conditions %v, want Ready", pod.Status.Conditions)
	}
	expectNoWord(t, pod)
}

// expectNoWord checks that nothing is left of the Ready that took the pod out of service.
func expectNoWord(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	for _, c := range pod.Status.Conditions {
		if c.Reason == "UpdatingInPlace" || c.Message != "" {
			t.Errorf("condition %+v", c)
		}
	}
}

// A kubelet looks at the Ready of a pod with readiness gates at once.
func TestGatesAreNotWaitedFor(t *testing.T) {
	player := newPlayer(t)
	gated := newPod()
	gated.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: gate}}
	pod := player.settle(withGate(player.settle(gated, "pod-start"), corev1.ConditionTrue), "pod-sync")
	if got := player.delay(takenOut(pod)); got != 0 {
		t.Errorf("a foreign Ready is taken back after %s, want at once", got)
	}
}

func TestGenerationIsObserved(t *testing.T) {
	player := newPlayer(t)
	pod := player.settle(newPod(), "pod-start")
	pod.Generation++
	if got := player.delay(takenOut(pod)); got != 0 {
		t.Errorf("a new generation is observed after %s, want at once", got)
	}
	if pod = player.settle(pod, "pod-sync"); pod.Status.ObservedGeneration != pod.Generation {
		t.Errorf("observedGeneration %d, want %d", pod.Status.ObservedGeneration, pod.Generation)
	}
}

func TestReadySinceStaysWhileReadyStays(t *testing.T) {
	player := newPlayer(t)
	pod := player.settle(newPod(), "pod-start")
	long := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	for i := range pod.Status.Conditions {
		pod.Status.Conditions[i].LastTransitionTime = long
	}
	pod.Generation++
	pod = player.settle(pod, "pod-sync")
	for _, condition := range pod.Status.Conditions {
		if !condition.LastTransitionTime.Equal(&long) {
			t.Errorf("%s since %s, want %s", condition.Type, condition.LastTransitionTime, long)
		}
	}
}

func TestDelayCanBeAsked(t *testing.T) {
	player := newPlayer(t)
	for asked, want := range map[string]time.Duration{"": time.Second, "3s": 3 * time.Second} {
		pod := newPod()
		if asked != "" {
			pod.Annotations = map[string]string{"simulated.stayput.dev/start-delay": asked}
		}
		if got := player.delay(pod); got != want {
			t.Errorf("delay %s for annotation %q; want %s", got, asked, want)
		}
	}
}

func TestFinishedAndDeletedPods(t *testing.T) {
	player := newPlayer(t)
	failed := newPod()
	failed.Status.Phase = corev1.PodFailed
	player.settle(failed)
	deleted := newPod()
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	if stage := player.match(deleted); stage == nil || stage.Name() != "pod-delete" {
		t.Errorf("a pod being deleted is in stage %v, want pod-delete", stage)
	}
}

// player plays the stages for pods as kwok's pod controller does.
type player struct {
	t        *testing.T
	stages   lifecycle.Lifecycle
	renderer gotpl.Renderer
}

func newPlayer(t *testing.T) player {
	t.Helper()
	objects, err := config.Load(t.Context(), "stages.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var ofPods []*internalversion.Stage
	for _, stage := range config.FilterWithType[*internalversion.Stage](objects) {
		if stage.Spec.ResourceRef.Kind == "Pod" {
			ofPods = append(ofPods, stage)
		}
	}
	stages, err := lifecycle.NewLifecycle(ofPods)
	if err != nil {
		t.Fatal(err)
	}
	return player{t, stages, gotpl.NewRenderer(gotpl.FuncMap{
		"NodeIPWith": func(string) string { return "10.201.0.1" },
		"PodIPWith":  func(_ string, _ bool, _, _, _ string) string { return "10.200.0.1" },
	})}
}

// settle plays exactly the named stages. Then no stage must be left to play.
func (p player) settle(pod *corev1.Pod, stages ...string) *corev1.Pod {
	p.t.Helper()
	for _, name := range stages {
		pod = p.step(pod, name)
	}
	if stage := p.match(pod); stage != nil {
		p.t.Fatalf("stage %s is left to play after %v for status %+v", stage.Name(), stages, pod.Status)
	}
	return pod
}

func (p player) step(pod *corev1.Pod, name string) *corev1.Pod {
	p.t.Helper()
	stage := p.match(pod)
	if stage == nil || stage.Name() != name {
		p.t.Fatalf("stage %v is next, want %s, for status %+v", stage, name, pod.Status)
	}
	result := pod.DeepCopy()
	_, err := stage.DoSteps(0, nil, pod, p.renderer, nil, nil, func(patch *lifecycle.Patch) (err error) {
		result, err = patched(result, patch.Data)
		return err
	}, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return result
}

func (p player) match(pod *corev1.Pod) *lifecycle.Stage {
	p.t.Helper()
	stage, err := p.stages.Match(p.t.Context(), event(pod))
	if err != nil {
		p.t.Fatal(err)
	}
	return stage
}

// delay returns how long the next stage waits.
func (p player) delay(pod *corev1.Pod) time.Duration {
	p.t.Helper()
	stage := p.match(pod)
	if stage == nil {
		p.t.Fatalf("no stage is next for status %+v", pod.Status)
	}
	delay, _, err := stage.Delay(p.t.Context(), event(pod), time.Now())
	if err != nil {
		p.t.Fatal(err)
	}
	return delay
}

func event(pod *corev1.Pod) *lifecycle.Event {
	return &lifecycle.Event{Labels: pod.Labels, Annotations: pod.Annotations, Data: pod}
}

func patched(pod *corev1.Pod, patch []byte) (*corev1.Pod, error) {
	original, err := json.Marshal(pod)
	if err != nil {
		return nil, err
	}
	merged, err := strategicpatch.StrategicMergePatch(original, patch, &corev1.Pod{})
	if err != nil {
		return nil, err
	}
	result := &corev1.Pod{}
	return result, json.Unmarshal(merged, result)
}

// newPod returns a pod as the scheduler leaves it.
func newPod() *corev1.Pod {
	always := corev1.ContainerRestartPolicyAlways
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: "default", UID: "uid", Generation: 1},
		Spec: corev1.PodSpec{
			NodeName:   "simulated",
			Containers: []corev1.Container{{Name: "app", Image: "app:v1"}, {Name: "other", Image: "other:v1"}},
			InitContainers: []corev1.Container{
				{Name: "setup", Image: "setup:v1"},
				{Name: "sidecar", Image: "sidecar:v1", RestartPolicy: &always},
			},
		},
		Status: corev1.PodStatus{
			Phase:      corev1.PodPending,
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}},
		},
	}
}

// withGate returns a copy of pod with the gate's condition set.
func withGate(pod *corev1.Pod, status corev1.ConditionStatus) *corev1.Pod {
	result := pod.DeepCopy()
	for i := range result.Status.Conditions {
		if result.Status.Conditions[i].Type == gate {
			result.Status.Conditions[i].Status = status
			return result
		}
	}
	result.Status.Conditions = append(result.Status.Conditions, corev1.PodCondition{Type: gate, Status: status})
	return result
}

func isTrue(pod *corev1.Pod, condition corev1.PodConditionType) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == condition {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
