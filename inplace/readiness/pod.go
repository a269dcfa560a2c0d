package readiness

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/times"
)

const (
	// FirstToGo is the lowest pod-deletion-cost: of pods equally ready their controller deletes that one first (ActivePodsWithRanks
	// in pkg/controller/controller_utils.go; GetDeletionCostFromPodAnnotations in pkg/apis/core/helper says what parses).
	FirstToGo = "-2147483648"
)

func Goes(pod *corev1.Pod) bool {
	return pod.Annotations[inplace.AnnotationBorrowed] != "" && pod.Annotations[corev1.PodDeletionCost] == FirstToGo
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

// CannotPull are the reasons for which a container waits when an image of it cannot be pulled: pkg/kubelet/images/types.go, and
// errors of k8s.io/cri-api.
var CannotPull = map[string]bool{
	"ErrImagePull": true, "ImagePullBackOff": true, "InvalidImageName": true, "ErrImageNeverPull": true, "ImageInspectError": true,
	"RegistryUnavailable": true, "SignatureValidationFailed": true,
}

// Sleeps is how long the container's preStop hook does nothing else.
func Sleeps(pod *corev1.Pod, container string) time.Duration {
	for _, c := range pod.Spec.Containers {
		if c.Name == container && c.Lifecycle != nil && c.Lifecycle.PreStop != nil && c.Lifecycle.PreStop.Sleep != nil {
			return time.Duration(c.Lifecycle.PreStop.Sleep.Seconds) * time.Second
		}
	}
	return 0
}

// Touched tells whether we have, or may have, left something to do on the pod.
func Touched(pod *corev1.Pod) bool {
	return Closed(pod) || Unopened(pod) || pod.Annotations[inplace.AnnotationMove] != "" || pod.Annotations[inplace.AnnotationBorrowed] != ""
}
