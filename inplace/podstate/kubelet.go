package podstate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/compat"
	"github.com/stayput/stayput/inplace/edit"
)

// CannotRestart returns why the kubelet of the pod's node would not restart a container for its change. It is nil if the kubelet
// would, or if the node is not known.
func CannotRestart(node *corev1.Node, pod *corev1.Pod, changes edit.ContainerChanges) *inplace.Reason {
	if node == nil || compat.RestartsSidecars(node.Status.NodeInfo.KubeletVersion) {
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

// TooSmall returns which resource the pod would request more of, with the changes, than the node has in all. It is empty if there
// is none. Such a resize need not be tried: kubelets call it Infeasible, and admission refuses it (plugin/pkg/admission/podresize).
// For a node that is not known it is empty.
func TooSmall(node *corev1.Node, pod *corev1.Pod, changes edit.ContainerChanges) string {
	if node == nil || !changes.Resizes() {
		return ""
	}
	asks := resource.PodRequests(&corev1.Pod{Spec: changes.Resized(pod.Spec)}, resource.PodResourcesOptions{})
	for _, name := range edit.Resizable {
		wants := asks[name]
		if has, known := node.Status.Allocatable[name]; known && wants.Cmp(has) > 0 {
			return fmt.Sprintf("%s of %s is more than all of node %s, which has %s", name, wants.String(), node.Name, has.String())
		}
	}
	return ""
}
