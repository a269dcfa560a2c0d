package podstate

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
)

// IsPrePullPod reports whether the pod is a pre-pull pod, as far as its label says.
func IsPrePullPod(pod *corev1.Pod) bool { return pod.Labels[inplace.LabelPrePull] != "" }

// MayBeOrphan reports whether the pod is left over if its workload is deleted without it, as with `kubectl delete --cascade=orphan`: the
// leader created it only to pull images. A native controller did not create it from a template that has Stayput's label.
func MayBeOrphan(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return pod.DeletionTimestamp == nil && IsPrePullPod(pod) &&
		(owner == nil || owner.Kind == "Deployment" || owner.Kind == "ControllerRevision")
}
