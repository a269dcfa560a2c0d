package inplace

import (
	"strconv"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
)

// PodOperations returns the operations that bring a live pod of template `from` to template `to`; c is their comparison and
// must be InPlace, so whatever annotations differ are allowed to. They touch only what differs between the templates, never
// what admission put into the pod, nor the hash of a revision. Values the pod has already are left out.
func (c Change) PodOperations(pod *corev1.Pod, from, to Template) []jsonpatch.Operation {
	old, updated := from.typed(), to.typed()
	operations := c.imageOperations(pod)
	operations = append(operations, mapOperations("labels", pod.Labels, old.Labels, updated.Labels)...)
	return append(operations, mapOperations("annotations", pod.Annotations, old.Annotations, updated.Annotations)...)
}

// imageOperations finds the containers by name: the pod may have more than its template, and in another order.
func (c Change) imageOperations(pod *corev1.Pod) []jsonpatch.Operation {
	var operations []jsonpatch.Operation
	for _, image := range c.Images {
		for i, container := range pod.Spec.Containers {
			if container.Name == image.Container && container.Image != image.To {
				path := pointer("spec", "containers", strconv.Itoa(i), "image")
				operations = append(operations, jsonpatch.NewOperation("replace", path, image.To))
			}
		}
	}
	return operations
}

// mapOperations carries the difference between two templates' labels or annotations over to those of a pod.
func mapOperations(field string, live, from, to map[string]string) []jsonpatch.Operation {
	var changed []entry
	for _, key := range changedKeys(from, to) {
		if key != labelTemplateHash && key != labelRevisionHash {
			value, wanted := to[key]
			changed = append(changed, entry{key: key, value: value, gone: !wanted})
		}
	}
	return entryOperations(field, live, changed)
}
