package prepull

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Awaits is what the node of the pod still pulls, one clause for people; empty if no puller is at work there.
func (p Pulling) Awaits(pod *corev1.Pod) string {
	at := slices.IndexFunc(p.Pullers, func(puller *corev1.Pod) bool {
		return puller.DeletionTimestamp == nil && puller.Spec.NodeName == pod.Spec.NodeName
	})
	if at < 0 {
		return ""
	}
	state, message := p.Waiter.tells(p.Pullers[at])
	if state != pullerWorks && state != pullerFailed {
		return ""
	}
	return strings.TrimSuffix("its node to pull images: "+message, ": ")
}
