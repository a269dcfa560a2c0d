package readiness

import (
	corev1 "k8s.io/api/core/v1"
)

func Terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Live is IsPodActive of pkg/controller/controller_utils.go, and so what status.replicas of a ReplicaSet counts.
func Live(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && !Terminal(pod)
}

// putCondition puts the condition, if there is one, in the place of the one of its type.
func putCondition(pod *corev1.Pod, set *corev1.PodCondition) {
	if set != nil {
		pod.Status.Conditions = WithCondition(pod.Status.Conditions, *set)
	}
}
