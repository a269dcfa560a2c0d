package readiness

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/times"
)

// Terminal reports whether the pod is over: its containers have ended and never start again.
func Terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Live is IsPodActive of pkg/controller/controller_utils.go, and so what status.replicas of a ReplicaSet counts.
func Live(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && !Terminal(pod)
}

// AvailableAt is IsPodAvailable of pkg/api/v1/pod/util.go; if it is only a matter of time, of how much.
func AvailableAt(pod *corev1.Pod, minReadySeconds int32, now time.Time) (bool, time.Duration) {
	ready := conditions.Condition(pod, corev1.PodReady)
	switch {
	case !conditions.IsTrue(pod, corev1.PodReady):
		return false, 0
	case minReadySeconds == 0:
		return true, 0
	case ready.LastTransitionTime.IsZero():
		return false, 0
	}
	return times.Since(ready.LastTransitionTime.Time, time.Duration(minReadySeconds)*time.Second, now)
}

// HasMarks reports whether we have, or may have, left something to do on the pod.
func HasMarks(pod *corev1.Pod) bool {
	return Closed(pod) || Unopened(pod) || pod.Annotations[inplace.AnnotationMove] != "" || pod.Annotations[inplace.AnnotationSurgePod] != ""
}

const (
	// LowestDeletionCost is the lowest pod-deletion-cost: of pods equally ready their controller deletes that one first (ActivePodsWithRanks
	// in pkg/controller/controller_utils.go; GetDeletionCostFromPodAnnotations in pkg/apis/core/helper says what parses).
	LowestDeletionCost = "-2147483648"
)

// Removing reports whether the pod was borrowed and is given back.
func Removing(pod *corev1.Pod) bool {
	return pod.Annotations[inplace.AnnotationSurgePod] != "" && pod.Annotations[corev1.PodDeletionCost] == LowestDeletionCost
}
