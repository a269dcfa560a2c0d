package readiness

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

// Terminal reports whether the pod has ended: its containers have ended and never start again.
func Terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Live reports whether the pod is active. It is IsPodActive of pkg/controller/controller_utils.go, and so status.replicas of a
// ReplicaSet counts the pod.
func Live(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && !Terminal(pod)
}

// AvailableAt reports whether the pod is available. It is IsPodAvailable of pkg/api/v1/pod/util.go. If only time is missing, it
// returns how much.
func AvailableAt(pod *corev1.Pod, minReadySeconds int32, now time.Time) (bool, time.Duration) {
	ready := apps.Condition(pod, corev1.PodReady)
	switch {
	case !apps.IsTrue(pod, corev1.PodReady):
		return false, 0
	case minReadySeconds == 0:
		return true, 0
	case ready.LastTransitionTime.IsZero():
		return false, 0
	}
	return inplace.Since(ready.LastTransitionTime.Time, time.Duration(minReadySeconds)*time.Second, now)
}

// AvailableAt reports the same of a pod that may have been patched while it served: its kubelet may never have reported it as not Ready, so
// the start of its containers counts, too.
func (m Move) AvailableAt(pod *corev1.Pod, minReadySeconds int32, now time.Time) (bool, time.Duration) {
	available, wait := AvailableAt(pod, minReadySeconds, now)
	if !available && wait == 0 {
		return false, 0
	}
	for name := range m.Containers {
		if running := ContainerStatus(pod, name).State.Running; running != nil {
			one, left := inplace.Since(running.StartedAt.Time, time.Duration(minReadySeconds)*time.Second, now)
			available, wait = available && one, max(wait, left)
		}
	}
	return available, wait
}

// HasMarks reports whether Stayput has, or may have, left something to do on the pod.
func HasMarks(pod *corev1.Pod) bool {
	return Out(pod) || pod.Annotations[inplace.AnnotationMove] != "" || pod.Annotations[inplace.AnnotationSurgePod] != ""
}

const (
	// LowestDeletionCost is the lowest pod-deletion-cost: of pods equally ready, the ReplicaSet controller deletes that one first
	// (ActivePodsWithRanks in pkg/controller/controller_utils.go). GetDeletionCostFromPodAnnotations in pkg/apis/core/helper says
	// which values parse.
	LowestDeletionCost = "-2147483648"
)

// Removing reports whether the pod is a surge pod that is being removed.
func Removing(pod *corev1.Pod) bool {
	return pod.Annotations[inplace.AnnotationSurgePod] != "" && pod.Annotations[corev1.PodDeletionCost] == LowestDeletionCost
}
