package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
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

// isComplete is the native meaning of a finished rollout (pkg/controller/deployment/util, DeploymentComplete).
func isComplete(deployment *inplace.Deployment) bool {
	desired, status := ptr.Deref(deployment.Spec.Replicas, 1), deployment.Status
	return status.ObservedGeneration >= deployment.Generation &&
		status.UpdatedReplicas == desired && status.Replicas == desired && status.AvailableReplicas == desired
}

// exceededDeadline tells whether the status says that the rollout has made no progress for too long.
func exceededDeadline(status appsv1.DeploymentStatus) bool {
	for _, c := range status.Conditions {
		if c.Type == appsv1.DeploymentProgressing {
			return c.Status == corev1.ConditionFalse && c.Reason == "ProgressDeadlineExceeded"
		}
	}
	return false
}
