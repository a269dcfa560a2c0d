package prepull

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Awaits returns which images the node of the pod still pulls, as one clause of a sentence. It is empty if no pre-pull pod works
// there.
func (p Pulling) Awaits(pod *corev1.Pod) string {
	at := slices.IndexFunc(p.PrePullPods, func(prePullPod *corev1.Pod) bool {
		return prePullPod.DeletionTimestamp == nil && prePullPod.Spec.NodeName == pod.Spec.NodeName
	})
	if at < 0 {
		return ""
	}
	state, message := told(p.PrePullPods[at])
	if state != podWorks && state != podFailed {
		return ""
	}
	return strings.TrimSuffix("its node to pre-pull images: "+message, ": ")
}
