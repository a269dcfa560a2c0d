package podstate

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// IsPrePullPod reports whether the pod is a pre-pull pod, as far as its label says.
func IsPrePullPod(pod *corev1.Pod) bool { return pod.Labels[inplace.LabelPrePull] != "" }

// MayBeOrphan reports whether something is left to do for the pod if its workload is deleted without it, as with `kubectl delete
// --cascade=orphan`: the leader keeps the pod out of service, or created it only to pull images.
func MayBeOrphan(pod *corev1.Pod) bool {
	return readiness.Live(pod) && readiness.Closed(pod) || pod.DeletionTimestamp == nil && isOwnPrePullPod(pod)
}

// Orphan returns the step for such a pod once it belongs to no workload, and whether that step may be taken now. A pre-pull pod is deleted.
// Any other pod serves again, even a surge pod that was about to be removed, since no controller removes it. If only time is needed, Orphan
// returns how long to wait.
func Orphan(pod *corev1.Pod, unreachable bool, now time.Time) (step steps.Step, may bool, wait time.Duration) {
	if isOwnPrePullPod(pod) {
		return steps.DeletePrePullPod{Pod: pod, Why: "its workload is gone"}, true, 0
	}
	return reopen(pod, unreachable, now)
}

// isOwnPrePullPod reports whether Stayput created the pre-pull pod: a native controller did not create it from a template that has
// Stayput's label.
func isOwnPrePullPod(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return IsPrePullPod(pod) && (owner == nil || owner.Kind == "Deployment" || owner.Kind == "ControllerRevision")
}
