package daemonsets

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// NeedsDryRun implements engine.Planner.
func (v *planner) NeedsDryRun() bool {
	return v.updateRevision != nil && v.NewPods.UpdateRevision == "" && v.unfinished()
}

// AskDryRun implements engine.Planner. The pod of the dry run is for the node of a pod that is to be updated.
func (v *planner) AskDryRun() podstate.Turns {
	turns := podstate.Turns{}
	for _, m := range v.pods {
		turns[&m.State] = m.Restarts() && readiness.Closed(m.Pod)
	}
	v.OpenGates(turns)
	if Updating(v.updateRevision) {
		v.renew()
	}
	for m := range v.pending() {
		if m.Needs().InPlace() {
			template := podTemplate(v.DaemonSet, v.updateRevision, m.Pod.Spec.NodeName)
			v.Result.DryRun = &steps.DryRun{UpdateRevision: v.updateRevision.UID, Pod: dryrun.NewPod(template, v.DaemonSet, "DaemonSet")}
			break
		}
	}
	return turns
}

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

// againstDryRun returns why pods that can be updated in place cannot become what new pods would be; nil if they can.
func (v *planner) againstDryRun() *inplace.Reason {
	return v.AgainstDryRun(func(yield func(*podstate.State) bool) {
		for m := range v.pending() {
			if m.Needs().InPlace() && !yield(&m.State) {
				return
			}
		}
	})
}
