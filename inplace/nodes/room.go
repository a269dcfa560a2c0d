package nodes

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/stayput/stayput/inplace/amounts"
	"github.com/stayput/stayput/inplace/edit"
)

// TooSmall is what the node has less of in all than the pod would ask for with the changes, so that nobody needs to try; empty if nothing. Kubelets call that
// Infeasible, and admission refuses it (plugin/pkg/admission/podresize). Of a node that is not known nobody can say.
func TooSmall(node *corev1.Node, pod *corev1.Pod, changes edit.ContainerChanges) string {
	if node == nil || !changes.Resizes() {
		return ""
	}
	asks := resource.PodRequests(&corev1.Pod{Spec: changes.Resized(pod.Spec)}, resource.PodResourcesOptions{})
	for _, name := range amounts.Resizable {
		wants := asks[name]
		if has, known := node.Status.Allocatable[name]; known && wants.Cmp(has) > 0 {
			return fmt.Sprintf("%s of %s is more than all of node %s, which has %s", name, wants.String(), node.Name, has.String())
		}
	}
	return ""
}
