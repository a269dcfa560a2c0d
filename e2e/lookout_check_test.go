package e2e

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func TestLookoutTellsWhenEachGenerationWasRolledOut(t *testing.T) {
	from, one, l := time.Now(), int32(1), newLookout()
	after := func(seconds int) time.Time { return from.Add(time.Duration(seconds) * time.Second) }
	status := func(second int, generation, observed int64) {
		l.take(event{at: after(second), what: watch.Modified, object: &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{UID: "a", Generation: generation},
			Spec:       appsv1.DeploymentSpec{Replicas: &one},
			Status:     appsv1.DeploymentStatus{ObservedGeneration: observed, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1},
		}})
	}
	status(1, 1, 1)
	status(2, 2, 1) // the edit is not observed yet
	status(5, 2, 2)
	status(9, 2, 2) // a later event of the same generation
	for generation, want := range map[int64][]float64{1: {3}, 2: {3}, 3: nil} {
		got, missing := l.waits([]edited{{"a", generation, after(2)}})
		if !slices.Equal(got, want) || missing != 1-len(want) {
			t.Errorf("generation %d took %v s, %d are missing, instead of %v", generation, got, missing, want)
		}
	}
}

func TestLookoutAddsWhenPodsAreNotReady(t *testing.T) {
	l := newLookout()
	for _, e := range aSecondEach("a-", "b-", "a+", "bx", "c+", "c-") {
		l.take(e)
	}
	if got := l.sofar(); got != 4 {
		t.Errorf("pods were not Ready for %v s instead of 4", got)
	}
	l.take(event{at: time.Now().Add(time.Hour), what: watch.Modified, object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "b"}}})
	if got := l.sofar(); got != 4 {
		t.Errorf("a pod whose wait is not over counts: %v s", got)
	}
}

func TestLookoutCountsPodsOutOfService(t *testing.T) {
	l := newLookout()
	take := func(events ...string) int {
		for _, e := range aSecondEach(events...) {
			l.take(e)
		}
		return l.mostOut()
	}
	for i, step := range []struct {
		events []string
		want   int
	}{
		{[]string{"a+", "b+"}, 0},
		{[]string{"a-", "b-", "a-", "a+", "c-", "bx"}, 2},
		{nil, 1}, // c is still out
		{[]string{"c+", "a-", "a+"}, 1},
		{nil, 0},
	} {
		if got := take(step.events...); got != step.want {
			t.Errorf("step %d: %d pods were out of service instead of %d", i, got, step.want)
		}
	}
}
