package podstate

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// IsPrePullPod reports whether the pod was made to have its node pull images, as far as its label says.
func IsPrePullPod(pod *corev1.Pod) bool { return pod.Labels[inplace.LabelPrePull] != "" }

// MayBeOrphan reports whether something is left to do for the pod if its workload goes without it, as with `kubectl delete --cascade=orphan`:
// the leader keeps it out of service, or made it only to pull images.
func MayBeOrphan(pod *corev1.Pod) bool {
	return readiness.Live(pod) && readiness.Closed(pod) || pod.DeletionTimestamp == nil && isOwnPrePullPod(pod)
}

// Orphan is what becomes of such a pod when it belongs to no workload any more, if that may be now: a puller goes, and any other serves again,
// also one that was to be given back, since nobody takes it. If it is only a matter of time, of how much.
func Orphan(pod *corev1.Pod, unreachable bool, now time.Time) (step steps.Step, may bool, wait time.Duration) {
	if isOwnPrePullPod(pod) {
		return steps.DeletePrePullPod{Pod: pod, Why: "its workload is gone"}, true, 0
	}
	return reopen(pod, unreachable, now)
}

// isOwnPrePullPod: nobody made it from a template that has our label.
func isOwnPrePullPod(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return IsPrePullPod(pod) && (owner == nil || owner.Kind == "Deployment" || owner.Kind == "ControllerRevision")
}

// Untouched reports whether the mode does not manage the workload, and nothing of ours is left but perhaps on its revisions.
func Untouched(m inplace.Mode, prePullPods []*corev1.Pod, persistedFallback string, pods []*corev1.Pod) bool {
	return !m.Manages() && len(prePullPods) == 0 && persistedFallback == "" && !slices.ContainsFunc(pods, readiness.HasMarks)
}
