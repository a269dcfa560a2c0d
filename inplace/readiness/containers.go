package readiness

import (
	"iter"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/stayput/stayput/inplace/edit"
)

// ContainerStatus returns the kubelet's status of the container of that name, which may be a sidecar. It is zero if the kubelet has
// reported none.
func ContainerStatus(pod *corev1.Pod, name string) corev1.ContainerStatus {
	for status := range containerStatuses(pod) {
		if status.Name == name {
			return *status
		}
	}
	return corev1.ContainerStatus{}
}

// containerStatuses yields the statuses of containers, then those of init containers.
func containerStatuses(pod *corev1.Pod) iter.Seq[*corev1.ContainerStatus] {
	return func(yield func(*corev1.ContainerStatus) bool) {
		for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

// CannotPull are the reasons for which a container waits when one of its images cannot be pulled. They are in
// pkg/kubelet/images/types.go, and among the errors of k8s.io/cri-api.
var CannotPull = map[string]bool{
	"ErrImagePull": true, "ImagePullBackOff": true, "InvalidImageName": true, "ErrImageNeverPull": true, "ImageInspectError": true,
	"RegistryUnavailable": true, "SignatureValidationFailed": true,
}

// GracePeriod returns how long the pod's containers may take to stop.
func GracePeriod(pod *corev1.Pod) time.Duration {
	return lasting(ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds))
}

// lasting returns that many seconds, but no more than 68 years: users may write numbers that no Duration has.
func lasting(seconds int64) time.Duration {
	return time.Duration(min(seconds, math.MaxInt32)) * time.Second
}

// Sleeps returns how long the container's preStop hook sleeps. It is 0 if the hook does anything else.
func Sleeps(pod *corev1.Pod, container string) time.Duration {
	c := edit.Named(&pod.Spec, container)
	if c == nil || c.Lifecycle == nil || c.Lifecycle.PreStop == nil || c.Lifecycle.PreStop.Sleep == nil {
		return 0
	}
	return lasting(c.Lifecycle.PreStop.Sleep.Seconds)
}
