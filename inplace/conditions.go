package inplace

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// The conditions of pods, nodes, Deployments and ReplicaSets are of types that have nothing in common but the names of their fields: the
// helpers of k8s.io/apimachinery/pkg/api/meta take none of them.

// first returns the first item that is so, in its place; nil if none is.
func first[T any](items []T, is func(*T) bool) *T {
	for i := range items {
		if is(&items[i]) {
			return &items[i]
		}
	}
	return nil
}

// condition returns the pod's condition of that type, nil if it has none.
func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	return first(pod.Status.Conditions, func(c *corev1.PodCondition) bool { return c.Type == kind })
}

// IsTrue tells whether the pod's condition of that type is True.
func IsTrue(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	c := condition(pod, kind)
	return c != nil && c.Status == corev1.ConditionTrue
}

// deploymentCondition returns the condition of that type, nil if the status has none.
func deploymentCondition(status appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	return first(status.Conditions, func(c *appsv1.DeploymentCondition) bool { return c.Type == kind })
}

// failureOf returns what keeps the controller of the ReplicaSet from creating or deleting pods, nil if nothing does.
func failureOf(rs *ReplicaSet) *appsv1.ReplicaSetCondition {
	return first(rs.Status.Conditions, func(c *appsv1.ReplicaSetCondition) bool { return c.Type == appsv1.ReplicaSetReplicaFailure })
}

// NodeReadiness is the status of the node's condition Ready; Unknown also as long as nobody has said.
func NodeReadiness(node *corev1.Node) corev1.ConditionStatus {
	ready := first(node.Status.Conditions, func(c *corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if ready == nil {
		return corev1.ConditionUnknown
	}
	return ready.Status
}
