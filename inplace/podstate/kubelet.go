package podstate

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
)

// virtualKubelet is the label, with its value, and the prefix of the taint of nodes of https://virtual-kubelet.io.
const (
	labelType, virtualKubelet = "type", "virtual-kubelet"
	virtualTaint              = "virtual-kubelet.io/"
)

// OnVirtualNode returns why pods on the node are not updated in place: behind a virtual-kubelet there is no kubelet that restarts their
// containers, or takes back a Ready that is not its own. It is nil for other nodes, and if the node is not known.
func OnVirtualNode(node *corev1.Node) *inplace.Reason {
	tainted := func(taint corev1.Taint) bool { return strings.HasPrefix(taint.Key, virtualTaint) }
	if node == nil || node.Labels[labelType] != virtualKubelet && !slices.ContainsFunc(node.Spec.Taints, tainted) {
		return nil
	}
	return &inplace.Reason{Code: inplace.CodeVirtualNode,
		Message: "node " + node.Name + " is a virtual one, which does not restart containers of running pods"}
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
