package readiness_test

import (
	"cmp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace/readiness"
)

// TestResized has what a kubelet of 1.36.3 reports of a resize, in that order, and what Stayput concludes from all of it together.
func TestResized(t *testing.T) {
	at := time.Unix(1000, 0)
	of := func(cpu string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
	}
	condition := func(kind corev1.PodConditionType, reason string, generation int64) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: "m", ObservedGeneration: generation,
			LastTransitionTime: metav1.NewTime(at.Add(time.Minute))}}
	}
	const never = 10 * time.Minute
	for name, test := range map[string]struct {
		observed   int64
		reports    string
		conditions []corev1.PodCondition
		after      time.Duration
		restarts   time.Duration // when it is patched once more, to restart
		done       bool
		why        string
	}{
		"not seen":                         {observed: 1, reports: "100m"},
		"not seen, and another is pending": {observed: 1, reports: "100m", conditions: condition(corev1.PodResizePending, "Infeasible", 1)},
		"seen":                             {observed: 2, reports: "100m"},
		"what it had before is the same":   {observed: 1, reports: "200m"},
		"in progress":                      {observed: 2, reports: "100m", conditions: condition(corev1.PodResizeInProgress, "", 2)},
		"reported, and in progress":        {observed: 2, reports: "200m", conditions: condition(corev1.PodResizeInProgress, "", 2)},
		"done":                             {observed: 2, reports: "0.2", done: true},
		"nothing reported":                 {observed: 2},
		"infeasible": {observed: 2, reports: "100m", conditions: condition(corev1.PodResizePending, "Infeasible", 2),
			why: "Infeasible: m"},
		"deferred": {observed: 2, reports: "100m", conditions: condition(corev1.PodResizePending, "Deferred",
			2), after: never},
		"deferred for too long": {observed: 2, reports: "100m", conditions: condition(corev1.PodResizePending, "Deferred", 2),
			after: never + time.Minute, why: "not within 10m0s: Deferred: m"},
		"memory in use": {observed: 2, reports: "100m", conditions: condition(corev1.PodResizeInProgress, "Error", 2),
			after: never + time.Minute, why: "not within 10m0s: Error: m"},
		"never seen": {observed: 1, reports: "100m", after: never,
			why: "not within 10m0s: its kubelet does not report the new CPU and memory"},
		"done, and a restart is not seen": {observed: 1, reports: "200m", after: never, restarts: never - time.Second},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Generation: 2},
			Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "app", Resources: of("200m")}}}}
		pod.Status = corev1.PodStatus{ObservedGeneration: test.observed, Conditions: test.conditions,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "app"}}}
		if test.reports != "" {
			pod.Status.ContainerStatuses[0].Resources = new(of(test.reports))
		}
		move := readiness.Move{Resize: readiness.Resize{"app": {At: metav1.NewTime(at)}}}
		if test.restarts > 0 {
			move.Containers = map[string]readiness.MovedContainer{"app": {At: metav1.NewTime(at.Add(test.restarts))}}
		}
		overdue, _ := move.Overdue(pod, never, at.Add(test.after))
		why := cmp.Or(move.Refused(pod), overdue)
		if done := move.Resized(pod); done != test.done || why != test.why {
			t.Errorf("%s: done %t, and not because %q", name, done, why)
		}
	}
}
