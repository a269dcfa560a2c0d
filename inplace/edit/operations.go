package edit

import (
	"maps"
	"strconv"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/patches"
)

// PodOperations returns the operations that make the change in a live pod; it must be InPlace, so whatever annotations change are
// allowed to. They touch only what changes, never what admission put into the pod, nor the hash of a revision. Values the pod has
// already are left out.
func (c Change) PodOperations(pod *corev1.Pod) []jsonpatch.Operation {
	operations := c.imageOperations(pod)
	operations = append(operations, entriesOf("labels", pod.Labels, c.Labels)...)
	return append(operations, c.annotationOperations(pod)...)
}

// annotationOperations add one before it goes: which of the annotations that people have named the pod has is not known here (observe/stub.go),
// and what is not there cannot be removed.
func (c Change) annotationOperations(pod *corev1.Pod) []jsonpatch.Operation {
	have, unsure := maps.Clone(pod.Annotations), []patches.EntryChange(nil)
	if have == nil {
		have = map[string]string{}
	}
	for _, change := range c.Annotations {
		if _, has := have[change.Key]; change.Goes && !has {
			have[change.Key], unsure = "", append(unsure, patches.EntryChange{Key: change.Key})
		}
	}
	if len(unsure) == 0 {
		return entriesOf("annotations", pod.Annotations, c.Annotations)
	}
	return append(patches.EntryOperations("annotations", pod.Annotations, unsure), entriesOf("annotations", have, c.Annotations)...)
}

// imageOperations finds the containers by name: the pod may have more than its template, and in another order.
func (c Change) imageOperations(pod *corev1.Pod) []jsonpatch.Operation {
	var operations []jsonpatch.Operation
	for change := range c.NewImages() {
		for i, container := range pod.Spec.Containers {
			if container.Name == change.Container && container.Image != change.Image.To {
				path := patches.Pointer("spec", "containers", strconv.Itoa(i), "image")
				operations = append(operations, jsonpatch.NewOperation("replace", path, change.Image.To))
			}
		}
	}
	return operations
}

// entriesOf makes what changes of the labels or annotations in those of a pod, but for the hash of a revision.
func entriesOf(field string, live map[string]string, changes []patches.EntryChange) []jsonpatch.Operation {
	var changed []patches.EntryChange
	for _, change := range changes {
		if change.Key != inplace.LabelTemplateHash && change.Key != inplace.LabelRevisionHash {
			changed = append(changed, change)
		}
	}
	return patches.EntryOperations(field, live, changed)
}
