package concurrency

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/readiness"
)

var now = time.Unix(1_000_000, 0)

// running returns a pod that is Ready.
func running(changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", UID: "pod", Annotations: map[string]string{}}}
	pod.Spec.NodeName = "x1"
	pod.Spec.Containers = []corev1.Container{{Name: "app"}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Image: "v2", ImageID: "2", ContainerID: "new", Ready: true,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func unready(pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse }

// out takes the pod out of service that long ago.
func out(ago time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions[0] = readiness.TakenOutUntil(pod, now.Add(time.Minute-ago), now.Add(-ago))
	}
}

// patched marks the pod as patched when the container with that ID ran.
func patched(before string, ago time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Annotations[inplace.AnnotationMove] = fmt.Sprintf(
			`{"hash":"2","containers":{"app":{"image":"v2","imageID":"1","containerID":%q,"at":%q}}}`,
			before, now.Add(-ago).UTC().Format(time.RFC3339))
	}
}

// stopping gives the pod that many seconds to stop.
func stopping(seconds int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.TerminationGracePeriodSeconds = &seconds }
}

func surge(pod *corev1.Pod) { pod.Annotations[inplace.AnnotationSurgePod] = "1" }

func TestCounts(t *testing.T) {
	old := Patience + 30*time.Second
	for name, test := range map[string]struct {
		pod *corev1.Pod
		// may is whether the pod can count at some moment, counts whether it does.
		may, counts, needs bool
	}{
		"serves":                          {running(), false, false, true},
		"not Ready for its own reasons":   {running(unready), false, false, false},
		"out of service":                  {running(out(0)), true, true, false},
		"out of service for nine minutes": {running(out(9 * time.Minute)), true, true, false},
		"out of service long ago":         {running(out(old)), true, false, false},
		"patched, its container runs on":  {running(patched("new", 0)), true, true, false},
		"restarted, not Ready":            {running(patched("old", 0), unready), true, true, false},
		"restarted, Ready":                {running(patched("old", 0)), false, false, true},
		"does not come back":              {running(patched("old", old), unready), true, false, false},
		"stops for years":                 {running(out(Patience+30*time.Minute), stopping(1e9)), true, true, false},
		"stops for years, out for hours":  {running(out(2*time.Hour), stopping(1e9)), true, false, false},
		"never stops":                     {running(out(0), stopping(1e10)), true, true, false},
		"surge pod":                       {running(out(0), surge), false, false, false},
		"surge pod that serves":           {running(surge), false, false, false},
		"being deleted":                   {running(out(0), func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }), false, false, false},
	} {
		if may := MayCount(test.pod); may != test.may {
			t.Errorf("%s: it may count: %t", name, may)
		}
		if counts := Counts(test.pod, now); counts != test.counts {
			t.Errorf("%s: it counts: %t", name, counts)
		}
		if needs := NeedsPermission(test.pod, now); needs != test.needs {
			t.Errorf("%s: it needs a permission: %t", name, needs)
		}
	}
}
