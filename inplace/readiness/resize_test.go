package readiness_test

import (
	"cmp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/internal/fixture"
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
		if others := (readiness.Move{}).Refused(pod); others != "" {
			t.Errorf("%s: the resize of another client counts as Stayput's: %s", name, others)
		}
	}
}

// TestOverdue: without a deadline, and without a resize, nothing takes too long.
func TestOverdue(t *testing.T) {
	start := time.Unix(1000, 0)
	alive := readiness.Resize{"app": {At: metav1.NewTime(start)}}
	restarts := readiness.Resize{"app": {At: metav1.NewTime(start), Restarts: true}}
	for name, test := range map[string]struct {
		resize          readiness.Resize
		deadline, after time.Duration
		why             bool
		wait            time.Duration
	}{
		"in time":                 {alive, time.Minute, 50 * time.Second, false, 10 * time.Second},
		"too late":                {alive, time.Minute, time.Minute, true, 0},
		"its container may drain": {restarts, time.Minute, time.Minute, false, 30 * time.Second},
		"no deadline":             {alive, 0, time.Hour, false, 0},
		"no resize":               {nil, time.Minute, time.Hour, false, 0},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: corev1.PodSpec{NodeName: "n"}} // its kubelet has not seen it
		why, wait := readiness.Move{Resize: test.resize}.Overdue(pod, test.deadline, start.Add(test.after))
		if (why != "") != test.why || wait != test.wait {
			t.Errorf("%s: %q, wait %s", name, why, wait)
		}
	}
}

// TestRestartsToResize: a pod whose container restarts for its CPU is out of service from the note on. While its node has no capacity it
// serves, but it still counts as taken out, since its container may restart at any moment.
func TestRestartsToResize(t *testing.T) {
	of := func(cpu string) corev1.ResourceRequirements { return container("", "", cpu).Resources }
	deferred := []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, ObservedGeneration: 2,
		Reason: corev1.PodReasonDeferred}}
	for name, test := range map[string]struct {
		alive           bool // no container restarts
		spec, reports   string
		observed        int64
		conditions      []corev1.PodCondition
		restarts, taken bool
	}{
		"noted":                        {spec: "100m", reports: "100m", observed: 2, restarts: true, taken: true},
		"noted, without a restart":     {alive: true, spec: "100m", reports: "100m", observed: 2},
		"written":                      {spec: "200m", reports: "100m", observed: 1, restarts: true, taken: true},
		"seen":                         {spec: "200m", reports: "100m", observed: 2, restarts: true, taken: true},
		"seen, without a restart":      {alive: true, spec: "200m", reports: "100m", observed: 2},
		"its node has no capacity":     {spec: "200m", reports: "100m", observed: 2, conditions: deferred, taken: true},
		"no capacity, and no restart":  {alive: true, spec: "200m", reports: "100m", observed: 2, conditions: deferred},
		"done":                         {spec: "200m", reports: "200m", observed: 2},
		"done, but for the last patch": {spec: "200m", reports: "200m", observed: 1, restarts: true, taken: true},
	} {
		move := readiness.Move{Resize: readiness.Resize{"app": {To: edit.AmountsOf(of("200m")), Restarts: !test.alive}}}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Generation: 2, Annotations: map[string]string{inplace.AnnotationMove: move.String()}},
			Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{container("app", "", test.spec), container("side", "", "50m")}}}
		pod.Status = corev1.PodStatus{ObservedGeneration: test.observed, Conditions: test.conditions,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "app", Resources: new(of(test.reports))}}}
		if got := move.RestartsToResize(pod); got != test.restarts {
			t.Errorf("%s: it restarts %t", name, got)
		}
		if got, _ := readiness.TakenOut(pod, fixture.Start); got != test.taken {
			t.Errorf("%s: it is taken out %t", name, got)
		}
	}
}
