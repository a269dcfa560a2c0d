package nodes

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	versions "k8s.io/apimachinery/pkg/util/version"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/edit"
)

// NodeReadiness is the status of the node's condition Ready; Unknown also as long as nobody has said.
func NodeReadiness(node *corev1.Node) corev1.ConditionStatus {
	ready := conditions.First(node.Status.Conditions, func(c *corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if ready == nil {
		return corev1.ConditionUnknown
	}
	return ready.Status
}

// KnownUnreachable reports whether the node's kubelet does not report; of a node that is not known it cannot be told.
func KnownUnreachable(node *corev1.Node) bool { return node != nil && Unreachable(node) }

// OlderThan counts what does not parse as older than anything.
func OlderThan(least *versions.Version, number string) bool {
	version, err := versions.ParseGeneric(number)
	return err != nil || version.LessThan(least)
}

// sidecarKubelet is the first that restarts a sidecar for another image (kubernetes#126525). An API server of 1.34 may have an older one.
var sidecarKubelet = versions.MustParseGeneric("1.32")

// CannotRestart is why the kubelet of the pod's node would not restart a container for its change; nil if it would. Of a node that is not known
// nobody can say.
func CannotRestart(node *corev1.Node, pod *corev1.Pod, changes edit.ContainerChanges) *inplace.Reason {
	if node == nil || !OlderThan(sidecarKubelet, node.Status.NodeInfo.KubeletVersion) {
		return nil
	}
	for container := range changes.Restarting() {
		if edit.SidecarNamed(&pod.Spec, container.Container) {
			return &inplace.Reason{Code: inplace.CodeOldKubelet, Message: fmt.Sprintf("kubelet %q of node %s does not restart sidecar %s of pod %s for its image",
				node.Status.NodeInfo.KubeletVersion, node.Name, container.Container, pod.Name)}
		}
	}
	return nil
}

// NodeReady reports whether the node says that it is Ready.
func NodeReady(node *corev1.Node) bool { return NodeReadiness(node) == corev1.ConditionTrue }

// Unreachable reports whether nobody hears of the node's kubelet, so that nobody would act on what its pods become. One that says it is not
// Ready does, and what is wrong may be just what an update mends.
func Unreachable(node *corev1.Node) bool { return NodeReadiness(node) == corev1.ConditionUnknown }

// ByName are the nodes by their names.
func ByName(nodes []*corev1.Node) map[string]*corev1.Node {
	named := map[string]*corev1.Node{}
	for _, node := range nodes {
		named[node.Name] = node
	}
	return named
}
