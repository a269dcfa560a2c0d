package edit

import (
	"slices"
	"strconv"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/patches"
)

// changed returns the change of the container's CPU and memory. It is zero if both are the same.
func changed(container corev1.Container, from, to, written Amounts) ResourceChange {
	if from == to {
		return ResourceChange{}
	}
	restarts := slices.ContainsFunc(Resizable, func(name corev1.ResourceName) bool {
		return from.Both(name) != to.Both(name) && resizePolicy(container, name) == corev1.RestartContainer
	})
	return ResourceChange{From: from, To: to, Written: written, Restarts: restarts}
}

// Resized returns the pod's spec with the CPU and memory that the changes give its containers.
func (c ContainerChanges) Resized(spec corev1.PodSpec) corev1.PodSpec {
	spec.Containers = slices.Clone(spec.Containers)
	for change := range c.those(ContainerChange.Resizes) {
		for i := range spec.Containers {
			if container := &spec.Containers[i]; container.Name == change.Container {
				container.Resources = change.Resources.To.Requirements()
			}
		}
	}
	return spec
}

// ResizeOperations returns the operations on subresource resize that give the pod's containers their CPU and memory. All other
// resources stay as they are.
func (c ContainerChanges) ResizeOperations(pod *corev1.Pod) []jsonpatch.Operation {
	var operations []jsonpatch.Operation
	for change := range c.those(ContainerChange.Resizes) {
		for i, container := range pod.Spec.Containers {
			if container.Name == change.Container {
				has, gets := container.Resources, change.Resources.Written.Requirements()
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
	for _, name := range Resizable {
		quantity := gets[name]
		if current, is := has[name]; is && current.Cmp(quantity) != 0 {
			operations = append(operations, jsonpatch.NewOperation("replace", patches.Pointer(append(path, string(name))...), quantity.String()))
		}
	}
	return operations
}
