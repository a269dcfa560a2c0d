package readiness_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
)

// TestProvedStarted: a startup probe that is made every ten seconds has answered 15 s after its container's start, or before the container
// was ready.
func TestProvedStarted(t *testing.T) {
	type change = func(*corev1.Pod)
	second := func(change func(*corev1.Container, *corev1.ContainerStatus)) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			c, status := pod.Spec.Containers[0], pod.Status.ContainerStatuses[0]
			c.Name, status.Name, status.State = "second", "second", fixture.RunningSince(fixture.Start.Add(4*time.Second))
			change(&c, &status)
			pod.Spec.Containers, pod.Status.ContainerStatuses = append(pod.Spec.Containers, c), append(pod.Status.ContainerStatuses, status)
		}
	}
	readyAfter := func(long time.Duration) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(fixture.Start.Add(long))
		}
	}
	for name, test := range map[string]struct {
		change change
		after  time.Duration
		proved bool
		wait   time.Duration
	}{
		"just restarted":           {nil, 5 * time.Second, false, 10 * time.Second},
		"it has answered by now":   {nil, 15 * time.Second, true, 0},
		"ready when it answered":   {readyAfter(15 * time.Second), 5 * time.Second, true, 0},
		"ready before it answered": {readyAfter(14 * time.Second), 14 * time.Second, false, time.Second},
		"never restarted":          {func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].RestartCount = 0 }, 5 * time.Second, true, 0},
		"it does not run": {func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].State = corev1.ContainerState{} },
			5 * time.Second, true, 0},
		"no startup probe":    {func(pod *corev1.Pod) { pod.Spec.Containers[0].StartupProbe = nil }, 5 * time.Second, true, 0},
		"no report of Ready":  {func(pod *corev1.Pod) { pod.Status.Conditions = nil }, 5 * time.Second, false, 10 * time.Second},
		"a second, restarted": {second(func(*corev1.Container, *corev1.ContainerStatus) {}), 5 * time.Second, false, 14 * time.Second},
		"a second, the first has answered": {second(func(*corev1.Container, *corev1.ContainerStatus) {}), 15 * time.Second, false,
			4 * time.Second},
		"a second, never restarted": {second(func(_ *corev1.Container, s *corev1.ContainerStatus) { s.RestartCount = 0 }),
			5 * time.Second, false, 10 * time.Second},
		"a second, without probe": {second(func(c *corev1.Container, _ *corev1.ContainerStatus) { c.StartupProbe = nil }),
			5 * time.Second, false, 10 * time.Second},
		"a second, which does not run": {second(func(_ *corev1.Container, s *corev1.ContainerStatus) { s.State = corev1.ContainerState{} }),
			5 * time.Second, false, 10 * time.Second},
	} {
		pod := &corev1.Pod{}
		pod.Spec.Containers = []corev1.Container{{Name: "app", StartupProbe: &corev1.Probe{PeriodSeconds: 10}}}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(fixture.Start.Add(time.Second))}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", RestartCount: 1, State: fixture.RunningSince(fixture.Start)}}
		if test.change != nil {
			test.change(pod)
		}
		if proved, wait := readiness.ProvedStarted(pod, fixture.Start.Add(test.after)); proved != test.proved || wait != test.wait {
			t.Errorf("%s: %t, wait %s", name, proved, wait)
		}
	}
}

// TestStartupProbed: one container with a startup probe is enough for the pod to be called Ready too early.
func TestStartupProbed(t *testing.T) {
	plain, probed := corev1.Container{Name: "app"}, corev1.Container{Name: "side", StartupProbe: &corev1.Probe{}}
	for _, containers := range [][]corev1.Container{{plain}, {plain, probed}} {
		if got := readiness.StartupProbed(&corev1.Pod{Spec: corev1.PodSpec{Containers: containers}}); got != (len(containers) == 2) {
			t.Errorf("with %d containers: %t", len(containers), got)
		}
	}
}
