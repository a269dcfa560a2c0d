package prepull

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Failing returns which node cannot pull its images, as one clause of a sentence; empty if none is known to fail.
func (p Pulling) Failing() string {
	for _, prePullPod := range p.PrePullPods {
		if state, message := told(prePullPod); state == podFailed && prePullPod.DeletionTimestamp == nil {
			return strings.TrimSuffix("node "+prePullPod.Spec.NodeName+" cannot pre-pull images: "+message, ": ")
		}
	}
	return ""
}

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
