package apps

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// The conditions of pods, nodes, Deployments and ReplicaSets are of different types that share only the names of their fields: the
// helpers of k8s.io/apimachinery/pkg/api/meta accept none of them.

// First returns a pointer to the first item, in the slice, for which the function returns true; nil if there is none.
func First[T any](items []T, is func(*T) bool) *T {
	for i := range items {
		if is(&items[i]) {
			return &items[i]
		}
	}
	return nil
}

// Condition returns the pod's condition of that type; nil if it has none.
func Condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	return First(pod.Status.Conditions, func(c *corev1.PodCondition) bool { return c.Type == kind })
}

// IsTrue reports whether the pod's condition of that type is True.
func IsTrue(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	c := Condition(pod, kind)
	return c != nil && c.Status == corev1.ConditionTrue
}

// DeploymentCondition returns the condition of that type; nil if the status has none.
func DeploymentCondition(status appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	return First(status.Conditions, func(c *appsv1.DeploymentCondition) bool { return c.Type == kind })
}

// FailureOf returns the condition that says why the ReplicaSet controller cannot create or delete pods; nil if there is none.
func FailureOf(rs *ReplicaSet) *appsv1.ReplicaSetCondition {
	return First(rs.Status.Conditions, func(c *appsv1.ReplicaSetCondition) bool { return c.Type == appsv1.ReplicaSetReplicaFailure })
}
