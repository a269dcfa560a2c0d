package kinds

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// IsTrue tells whether a pod's condition is True.
func IsTrue(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}
