package readiness

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

// TakenOut reports whether Stayput keeps the pod from serving: it is Out, or containers have yet to restart, however long its Ready is
// still that of the old ones. If that is only a matter of time, it returns how long it takes.
func TakenOut(pod *corev1.Pod, now time.Time) (bool, time.Duration) {
	move := MoveOf(pod)
	if Out(pod) || move.yetToResize(pod) {
		return true, 0
	}
	applied, wait := move.Applied(pod, now)
	return !applied, wait
}

// Restarting reports whether the pod does not serve, and may not because of an update in place: Stayput has taken it out of service, or
// it has not been Ready since it was patched, as far as can be told.
func Restarting(pod *corev1.Pod, now time.Time) bool {
	if out, _ := TakenOut(pod, now); out {
		return true
	}
	return pod.Annotations[inplace.AnnotationMove] != "" && !apps.IsTrue(pod, corev1.PodReady)
}

// OutSince returns when Stayput last took the pod out of service: when it became Out, or when containers were patched or their resize was
// noted. It is zero if Stayput has not.
func OutSince(pod *corev1.Pod) time.Time {
	move := MoveOf(pod)
	since := inplace.Latest(move.patchedAt(), move.Resize.notedAt())
	if Out(pod) {
		since = inplace.Latest(since, OutAt(pod))
	}
	return since
}
