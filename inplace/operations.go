package inplace

import (
	"strconv"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
)

// PodOperations returns the operations that make the change in a live pod; it must be InPlace, so whatever annotations change are
// allowed to. They touch only what changes, never what admission put into the pod, nor the hash of a revision. Values the pod has
// already are left out.
func (c Change) PodOperations(pod *corev1.Pod) []jsonpatch.Operation {
	operations := c.imageOperations(pod)
	operations = append(operations, entryOperations("labels", pod.Labels, c.Labels)...)
	return append(operations, entryOperations("annotations", pod.Annotations, c.Annotations)...)
}

// imageOperations finds the containers by name: the pod may have more than its template, and in another order.
func (c Change) imageOperations(pod *corev1.Pod) []jsonpatch.Operation {
	var operations []jsonpatch.Operation
	for change := range c.NewImages() {
		for i, container := range pod.Spec.Containers {
			if container.Name == change.Container && container.Image != change.Image.To {
				path := pointer("spec", "containers", strconv.Itoa(i), "image")
				operations = append(operations, jsonpatch.NewOperation("replace", path, change.Image.To))
			}
		}
	}
	return operations
}

// entryOperations carries what changes of the labels or annotations over to those of a pod.
func entryOperations(field string, live map[string]string, changes []EntryChange) []jsonpatch.Operation {
	var operations []jsonpatch.Operation
	for _, change := range changes {
		if change.Key == labelTemplateHash || change.Key == labelRevisionHash {
			continue
		}
		path := pointer("metadata", field, change.Key)
		current, has := live[change.Key]
		switch {
		case change.Goes && has:
			operations = append(operations, jsonpatch.NewOperation("remove", path, nil))
		case !change.Goes && (!has || current != change.Value):
			operations = append(operations, jsonpatch.NewOperation("add", path, change.Value))
		}
	}
	if live == nil && len(operations) > 0 {
		parent := jsonpatch.NewOperation("add", pointer("metadata", field), map[string]string{})
		return append([]jsonpatch.Operation{parent}, operations...)
	}
	return operations
}
