package nodes

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/stayput/stayput/inplace/edit"
)

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
