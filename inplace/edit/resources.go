package edit

import (
	"strconv"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/amounts"
	"github.com/stayput/stayput/inplace/patches"
)

// changed is zero where both are the same.
func changed(from, to amounts.Amounts) ResourceChange {
	if from == to {
		return ResourceChange{}
	}
	return ResourceChange{From: from, To: to}
}

func resourceChange(from, to corev1.ResourceRequirements) ResourceChange {
	return changed(amounts.Of(from), amounts.Of(to))
}

// ResizeOperations give the pod's containers their CPU and memory, in subresource resize, and leave all other resources as they are.
func (c ContainerChanges) ResizeOperations(pod *corev1.Pod) []jsonpatch.Operation {
	var operations []jsonpatch.Operation
	for change := range c.those(ContainerChange.Resizes) {
		for i, container := range pod.Spec.Containers {
			if container.Name == change.Container {
				has, gets := container.Resources, change.Resources.To.Requirements()
				operations = append(operations, listOperations(i, "requests", has.Requests, gets.Requests)...)
				operations = append(operations, listOperations(i, "limits", has.Limits, gets.Limits)...)
			}
		}
	}
	return operations
}

func listOperations(container int, list string, has, gets corev1.ResourceList) []jsonpatch.Operation {
	path := []string{"spec", "containers", strconv.Itoa(container), "resources", list}
	var operations []jsonpatch.Operation
	for _, name := range amounts.Resizable {
		quantity := gets[name]
		if current, is := has[name]; is && current.Cmp(quantity) != 0 {
			operations = append(operations, jsonpatch.NewOperation("replace", patches.Pointer(append(path, string(name))...), quantity.String()))
		}
	}
	return operations
}
