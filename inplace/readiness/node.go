package readiness

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/apps"
)

// NodeReadiness returns the status of the node's condition Ready. It is Unknown also if the node has no such condition yet.
func NodeReadiness(node *corev1.Node) corev1.ConditionStatus {
	ready := apps.First(node.Status.Conditions, func(c *corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if ready == nil {
		return corev1.ConditionUnknown
	}
	return ready.Status
}

// NodeReady reports whether the node says that it is Ready.
func NodeReady(node *corev1.Node) bool { return NodeReadiness(node) == corev1.ConditionTrue }

// Unreachable reports whether the node's kubelet does not report. Then no kubelet would act on a change of the node's pods. A
// kubelet that reports NotReady does act, and the update may be just what fixes the problem. It returns false for a node that is not known.
func Unreachable(node *corev1.Node) bool {
	return node != nil && NodeReadiness(node) == corev1.ConditionUnknown
}

// NodesByName returns the nodes by their names.
func NodesByName(nodes []*corev1.Node) map[string]*corev1.Node {
	named := map[string]*corev1.Node{}
	for _, node := range nodes {
		named[node.Name] = node
	}
	return named
}
