package inplace

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MayStray tells whether something is left to do for the pod if its workload goes without it, as with `kubectl delete --cascade=orphan`:
// the leader keeps it out of service, or made it only to pull images.
func MayStray(pod *corev1.Pod) bool {
	return live(pod) && Closed(pod) || pod.DeletionTimestamp == nil && isOwnPuller(pod)
}

// Stray is what becomes of such a pod when it belongs to no workload any more, if that may be now: a puller goes, and any other serves again,
// also one that was to be given back, since nobody takes it. If it is only a matter of time, of how much.
func Stray(pod *corev1.Pod, now time.Time) (step Step, may bool, wait time.Duration) {
	if isOwnPuller(pod) {
		return DeletePuller{Pod: pod, Why: "its workload is gone"}, true, 0
	}
	return reopen(pod, now)
}

// isOwnPuller: nobody made it from a template that has our label.
func isOwnPuller(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return IsPuller(pod) && (owner == nil || owner.Kind == "Deployment" || owner.Kind == "ControllerRevision")
}
