package controller

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
)

// condition returns the status of a pod's condition; empty if it is absent.
func condition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}

// isTrue tells whether a pod's condition is True.
func isTrue(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	return condition(pod, kind) == corev1.ConditionTrue
}

// isClosed tells whether somebody closed the pod's gate.
func isClosed(pod *corev1.Pod) bool {
	return condition(pod, inplace.ConditionServing) == corev1.ConditionFalse
}

// isGated tells whether the pod was born with our gate.
func isGated(pod *corev1.Pod) bool {
	for _, gate := range pod.Spec.ReadinessGates {
		if gate.ConditionType == inplace.ConditionServing {
			return true
		}
	}
	return false
}

// waitsForGate tells whether a pod that could still serve has our gate and nobody ever opened it.
func waitsForGate(object client.Object) bool {
	pod, ok := object.(*corev1.Pod)
	return ok && pod.DeletionTimestamp == nil && inplace.Unopened(pod)
}
