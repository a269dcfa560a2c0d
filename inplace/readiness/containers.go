package readiness

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ContainerStatus is what the kubelet says of the container of that name; zero if it has said nothing.
func ContainerStatus(pod *corev1.Pod, name string) corev1.ContainerStatus {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == name {
			return status
		}
	}
	return corev1.ContainerStatus{}
}

// CannotPull are the reasons for which a container waits when an image of it cannot be pulled: pkg/kubelet/images/types.go, and
// errors of k8s.io/cri-api.
var CannotPull = map[string]bool{
	"ErrImagePull": true, "ImagePullBackOff": true, "InvalidImageName": true, "ErrImageNeverPull": true, "ImageInspectError": true,
	"RegistryUnavailable": true, "SignatureValidationFailed": true,
}

// GracePeriod is how long the pod's containers may take to stop.
func GracePeriod(pod *corev1.Pod) time.Duration {
	if seconds := pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
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
