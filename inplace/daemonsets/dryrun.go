package daemonsets

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

// podTemplate returns what CreatePodTemplate and ReplaceDaemonSetPodNodeNameNodeAffinity in pkg/controller/daemon/util/daemonset_util.go
// return.
func podTemplate(d *apps.DaemonSet, updateRevision *apps.ControllerRevision, node string) map[string]any {
	tree, typed := d.Spec.Template.Tree(), d.Spec.Template.Typed()
	apps.ObjectOrNew(tree, "metadata", "labels")[inplace.LabelRevisionHash] = updateRevision.Labels[inplace.LabelRevisionHash]
	spec := apps.ObjectOrNew(tree, "spec")
	var tolerations []any
	own, templates := daemonTolerations(typed.Spec.HostNetwork), typed.Spec.Tolerations
	replaced := replacedBy(own)
	all, _ := spec["tolerations"].([]any)
	for i, toleration := range all {
		if i >= len(templates) || !replaced(templates[i]) { // a template that does not decode has no typed tolerations
			tolerations = append(tolerations, toleration)
		}
	}
	for _, toleration := range own {
		tolerations = append(tolerations, toleration)
	}
	spec["tolerations"] = tolerations
	apps.ObjectOrNew(
		spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
	)["nodeSelectorTerms"] = []corev1.NodeSelectorTerm{
		{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}
	return tree
}
