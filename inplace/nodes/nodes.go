package nodes

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	versions "k8s.io/apimachinery/pkg/util/version"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
)

// NodeReadiness returns the status of the node's condition Ready. It is Unknown also if the node has no such condition yet.
func NodeReadiness(node *corev1.Node) corev1.ConditionStatus {
	ready := apps.First(node.Status.Conditions, func(c *corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if ready == nil {
		return corev1.ConditionUnknown
	}
	return ready.Status
}

// KnownUnreachable reports whether the node's kubelet does not report. It returns false for a node that is not known.
func KnownUnreachable(node *corev1.Node) bool { return node != nil && Unreachable(node) }

// OlderThan reports whether the version is older than least. A number that does not parse is older than any version.
func OlderThan(least *versions.Version, number string) bool {
	version, err := versions.ParseGeneric(number)
	return err != nil || version.LessThan(least)
}

// sidecarKubelet is the first kubelet version that restarts a sidecar for another image (kubernetes#126525). An API server of 1.34
// may have an older kubelet.
var sidecarKubelet = versions.MustParseGeneric("1.32")

// CannotRestart returns why the kubelet of the pod's node would not restart a container for its change. It is nil if the kubelet
// would, or if the node is not known.
func CannotRestart(node *corev1.Node, pod *corev1.Pod, changes edit.ContainerChanges) *inplace.Reason {
	if node == nil || !OlderThan(sidecarKubelet, node.Status.NodeInfo.KubeletVersion) {
		return nil
	}
	for container := range changes.Restarting() {
		if edit.SidecarNamed(&pod.Spec, container.Container) {
			return &inplace.Reason{Code: inplace.CodeOldKubelet,
				Message: fmt.Sprintf("kubelet %q of node %s does not restart sidecar %s of pod %s for its image",
					node.Status.NodeInfo.KubeletVersion, node.Name, container.Container, pod.Name)}
		}
	}
	return nil
}

// NodeReady reports whether the node says that it is Ready.
func NodeReady(node *corev1.Node) bool { return NodeReadiness(node) == corev1.ConditionTrue }

// Unreachable reports whether the node's kubelet does not report. Then no kubelet would act on a change of the node's pods. A
// kubelet that reports NotReady does act, and the update may be just what fixes the problem.
func Unreachable(node *corev1.Node) bool { return NodeReadiness(node) == corev1.ConditionUnknown }

// ByName returns the nodes by their names.
func ByName(nodes []*corev1.Node) map[string]*corev1.Node {
	named := map[string]*corev1.Node{}
	for _, node := range nodes {
		named[node.Name] = node
	}
	return named
}
