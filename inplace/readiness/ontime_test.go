package readiness_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
)

// TestOnTimeUntil: a container that was told to stop is on time until it has stopped, for at most its grace period and ten seconds.
func TestOnTimeUntil(t *testing.T) {
	after := func(seconds int) time.Time {
		if seconds < 0 {
			return time.Time{}
		}
		return fixture.Start.Add(time.Duration(seconds) * time.Second)
	}
	ended := func(id string, seconds int) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: id, FinishedAt: metav1.NewTime(after(seconds))}}
	}
	runs, waits := fixture.RunningSince(fixture.Start), corev1.ContainerState{}
	const none = -1
	for name, test := range map[string]struct {
		id          string
		state, last corev1.ContainerState
		now         int
		until, by   int
	}{
		"it runs":                  {"old", runs, waits, 5, 5, 40},
		"it runs for too long":     {"old", runs, waits, 60, 40, 40},
		"it has ended":             {"old", ended("old", 7), waits, 9, 7, none},
		"it ended too late":        {"old", ended("old", 50), waits, 60, 40, none},
		"by a clock that is ahead": {"old", ended("old", 30), waits, 9, 9, none},
		"the next one runs":        {"new", runs, ended("old", 7), 9, 7, none},
		"the next one has ended":   {"new", ended("new", 8), ended("old", 7), 9, 7, none},
		"another one ended before": {"new", runs, ended("other", 7), 9, none, none},
		"nothing is known of it":   {"new", runs, waits, 9, none, none},
		"it waits":                 {"old", waits, waits, 9, none, none},
	} {
		pod := &corev1.Pod{}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ContainerID: test.id, State: test.state,
			LastTerminationState: test.last}}
		move := readiness.Move{Containers: map[string]readiness.MovedContainer{"app": {ContainerID: "old", At: metav1.NewTime(fixture.Start)}}}
		if got := move.OnTimeUntil(pod, after(test.now)); !got.Equal(after(test.until)) {
			t.Errorf("%s: on time until %s", name, got)
		}
		if got := move.StopsBy(pod, after(test.now)); !got.Equal(after(test.by)) {
			t.Errorf("%s: it stops by %s", name, got)
		}
	}
}
