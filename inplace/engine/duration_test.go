package engine_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/steps"
)

// started returns a pod that became Ready so long after its container app had started. The container side runs for an hour longer.
func started(tookToStart time.Duration) *corev1.Pod {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	pod := &corev1.Pod{}
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at.Add(tookToStart))},
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "app", State: running},
		{Name: "side", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at.Add(-time.Hour))}}},
	}
	return pod
}

// unready returns a pod that starts.
func unready() *corev1.Pod {
	pod := started(20 * time.Second)
	pod.Status.Conditions[0].Status = corev1.ConditionFalse
	return pod
}

func TestAboutDuration(t *testing.T) {
	const restartsApp, four = "in place: restarts app", 4 * time.Second
	pods := func(took ...time.Duration) (all []*corev1.Pod) {
		for _, each := range took {
			all = append(all, started(each))
		}
		return all
	}
	drained := inplace.Settings{Drain: 2 * time.Second}
	for name, test := range map[string]struct {
		left     int
		preview  steps.Preview
		pods     []*corev1.Pod
		settings inplace.Settings
		decision string
		want     string
	}{
		"batches": {20, steps.Preview{AtATime: 5}, pods(20*time.Second, 19*time.Second, 25*time.Second), drained, restartsApp,
			"takes about 1m20s: 4 × 20s to start, 5 at a time; stops and drains (2s behind a Service) come on top"},
		"a batch that is not full": {11, steps.Preview{AtATime: 5}, pods(four), inplace.Settings{}, restartsApp,
			"takes about 12s: 3 × 4s to start, 5 at a time; stops come on top"},
		"minReadySeconds": {2, steps.Preview{AtATime: 1, MinReadySeconds: 30}, pods(four), inplace.Settings{}, restartsApp,
			"takes about 1m8s: 2 × 34s to start, 1 at a time; stops come on top"},
		"surge pods stay": {20, steps.Preview{AtATime: 10, SurgePods: 5, Replaced: 5}, pods(20 * time.Second), inplace.Settings{}, restartsApp,
			"takes about 40s: 2 × 20s to start, 10 at a time; stops come on top"},
		"surge pods start first": {3, steps.Preview{AtATime: 1, SurgePods: 1}, pods(four), inplace.Settings{}, restartsApp,
			"takes about 16s: 4 × 4s to start, 1 at a time; stops come on top"},
		"a pod that lost Ready later does not count": {10, steps.Preview{AtATime: 2},
			pods(four, four, 3*time.Hour), inplace.Settings{}, restartsApp,
			"takes about 20s: 5 × 4s to start, 2 at a time; stops come on top"},
		"most pods lost Ready later": {10, steps.Preview{AtATime: 2},
			pods(four, 3*time.Hour, 3*time.Hour), drained, restartsApp, ""},
		"Ready before its container starts":           {10, steps.Preview{AtATime: 2}, pods(-four, -four), drained, restartsApp, ""},
		"a container that did not start in this hour": {10, steps.Preview{AtATime: 2}, pods(four), drained, "in place: restarts app, side", ""},
		"a container that does not exist":             {10, steps.Preview{AtATime: 2}, pods(four), drained, "in place: restarts app, other", ""},
		"pods that are not Ready":                     {10, steps.Preview{AtATime: 2}, []*corev1.Pod{unready()}, drained, restartsApp, ""},
		"no pods":                                     {10, steps.Preview{AtATime: 2}, nil, drained, restartsApp, ""},
		"no restart":                                  {10, steps.Preview{AtATime: 2}, pods(four), drained, "in place: no restart", ""},
		"native":                                      {10, steps.Preview{AtATime: 2}, pods(four), drained, "recreate: restarts app", ""},
		"no pod at a time":                            {10, steps.Preview{}, pods(four), drained, restartsApp, ""},
		"no fewer than half of the pods say so": {10, steps.Preview{AtATime: 2}, pods(four, 11*time.Minute), inplace.Settings{}, restartsApp,
			"takes about 20s: 5 × 4s to start, 2 at a time; stops come on top"},
		"as long as is believed": {2, steps.Preview{AtATime: 2}, pods(10 * time.Minute), inplace.Settings{}, restartsApp,
			"takes about 10m0s: 1 × 10m0s to start, 2 at a time; stops come on top"},
		"as short as is told": {2, steps.Preview{AtATime: 1}, pods(5 * time.Second), inplace.Settings{}, restartsApp,
			"takes about 10s: 2 × 5s to start, 1 at a time; stops come on top"},
		"at once": {2, steps.Preview{AtATime: 2, MinReadySeconds: 20}, pods(0), inplace.Settings{}, restartsApp,
			"takes about 20s: 1 × 20s to start, 2 at a time; stops come on top"},
		"no surge pods": {4, steps.Preview{AtATime: 2, SurgePods: 0}, pods(5 * time.Second), inplace.Settings{}, restartsApp,
			"takes about 10s: 2 × 5s to start, 2 at a time; stops come on top"},
		"a partition keeps all pods": {0, steps.Preview{AtATime: 5}, pods(20 * time.Second), inplace.Settings{}, restartsApp, ""},
		"seconds only":               {2, steps.Preview{AtATime: 1}, pods(four), drained, restartsApp, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := engine.Snapshot{Pods: test.pods, Settings: test.settings}
			if got := s.AboutDuration(test.preview, test.left, edit.Restarted(test.decision)); got != test.want {
				t.Errorf("users are told %q instead of %q", got, test.want)
			}
		})
	}
}
