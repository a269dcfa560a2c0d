package edit

import (
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/patches"
)

// PodOperations returns the operations that make the change in a live pod. The change must be InPlace, so all annotations in it are
// allowed. The operations touch only what changes. They touch neither what admission added to the pod nor the hash of a revision.
// Values that the pod has already are left out, except annotations.
func (c Change) PodOperations(pod *corev1.Pod) []jsonpatch.Operation {
	operations := append(c.imageOperations(pod), c.tolerationOperations(pod)...)
	labels := slices.DeleteFunc(slices.Clone(c.Labels), func(change patches.EntryChange) bool {
		return change.Key == inplace.LabelTemplateHash || change.Key == inplace.LabelRevisionHash
	})
	operations = append(operations, patches.EntryOperations("labels", pod.Labels, labels)...)
	return append(operations, c.annotationOperations(pod)...)
}

// imageOperations finds containers by name: the pod may have more containers than its template, and in another order.
func (c Change) imageOperations(pod *corev1.Pod) []jsonpatch.Operation {
	var operations []jsonpatch.Operation
	for change := range c.Containers.NewImages() {
		for at, container := range living(&pod.Spec) {
			if container.Name == change.Container && container.Image != change.Image.To {
				operations = append(operations, jsonpatch.NewOperation("replace", at.pointer("image"), change.Image.To))
			}
		}
	}
	return operations
}

// annotationOperations sets every annotation, and removes one only after it has set it, so the removal cannot fail. It knows only
// whether the pod has annotations at all: Stayput's caches drop other annotations, because any workload may list any annotation.
func (c Change) annotationOperations(pod *corev1.Pod) []jsonpatch.Operation {
	var operations []jsonpatch.Operation
	if pod.Annotations == nil && len(c.Annotations) > 0 {
		operations = append(operations, jsonpatch.NewOperation("add", patches.Pointer("metadata", "annotations"), map[string]string{}))
	}
	for _, change := range c.Annotations {
		at := patches.Pointer("metadata", "annotations", change.Key)
		operations = append(operations, jsonpatch.NewOperation("add", at, change.Value))
		if change.Removing {
			operations = append(operations, jsonpatch.NewOperation("remove", at, nil))
		}
	}
	return operations
}
