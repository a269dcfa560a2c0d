package controller

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
)

// isTrue tells whether a pod's condition is True.
func isTrue(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

// awaitsGate tells whether a pod that could still serve has our gate, and its kubelet has reported without anybody opening it.
func awaitsGate(object client.Object) bool {
	pod, ok := object.(*corev1.Pod)
	return ok && pod.DeletionTimestamp == nil && inplace.AwaitsGate(pod)
}

// mayStray tells whether something is left to do for a pod if its workload goes without it.
func mayStray(object client.Object) bool {
	pod, ok := object.(*corev1.Pod)
	return ok && inplace.MayStray(pod)
}
