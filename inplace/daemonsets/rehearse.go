package daemonsets

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

// podTemplate is CreatePodTemplate and ReplaceDaemonSetPodNodeNameNodeAffinity in pkg/controller/daemon/util/daemonset_util.go.
func podTemplate(d *apps.DaemonSet, target *apps.ControllerRevision, node string) map[string]any {
	tree, typed := d.Spec.Template.Tree(), d.Spec.Template.Typed()
	apps.Made(tree, "metadata", "labels")[inplace.LabelRevisionHash] = target.Labels[inplace.LabelRevisionHash]
	spec := apps.Made(tree, "spec")
	tolerations, _ := spec["tolerations"].([]any)
	for _, toleration := range daemonTolerations(typed.Spec.HostNetwork) {
		tolerations = append(tolerations, toleration)
	}
	spec["tolerations"] = tolerations
	apps.Made(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")["nodeSelectorTerms"] = []corev1.NodeSelectorTerm{
		{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}
	return tree
}
