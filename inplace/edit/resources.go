package edit

import (
	"cmp"
	"strconv"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stayput/stayput/inplace/patches"
)

// resizable are the resources that running containers can get more or less of.
var resizable = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// Resources are the CPU and memory of a container as quantities in one spelling, so that the same amounts are the same: empty where there is none.
type Resources struct {
	CPURequest    string `json:"cpuRequest,omitempty"`
	MemoryRequest string `json:"memoryRequest,omitempty"`
	CPULimit      string `json:"cpuLimit,omitempty"`
	MemoryLimit   string `json:"memoryLimit,omitempty"`
}

// ResourcesOf a container of a template or a pod. A request that is left out is the limit (SetDefaults_Pod in pkg/apis/core/v1/defaults.go).
func ResourcesOf(r corev1.ResourceRequirements) Resources {
	limits := Resources{CPULimit: milli(r.Limits), MemoryLimit: bytes(r.Limits)}
	limits.CPURequest, limits.MemoryRequest = cmp.Or(milli(r.Requests), limits.CPULimit), cmp.Or(bytes(r.Requests), limits.MemoryLimit)
	return limits
}

// milli is the CPU in the smallest unit that the API server keeps.
func milli(list corev1.ResourceList) string {
	quantity, has := list[corev1.ResourceCPU]
	if !has {
		return ""
	}
	return strconv.FormatInt(quantity.MilliValue(), 10) + "m"
}

func bytes(list corev1.ResourceList) string {
	quantity, has := list[corev1.ResourceMemory]
	if !has {
		return ""
	}
	return strconv.FormatInt(quantity.Value(), 10)
}

// like are these with the amounts of the other, as far as both have one.
func (r Resources) like(other Resources) Resources {
	amount := func(has, wants string) string {
		if has == "" {
			return ""
		}
		return cmp.Or(wants, has)
	}
	return Resources{CPURequest: amount(r.CPURequest, other.CPURequest), MemoryRequest: amount(r.MemoryRequest, other.MemoryRequest),
		CPULimit: amount(r.CPULimit, other.CPULimit), MemoryLimit: amount(r.MemoryLimit, other.MemoryLimit)}
}

// Requirements are the same as a container has them. What is no quantity is left out.
func (r Resources) Requirements() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: listOf(r.CPURequest, r.MemoryRequest), Limits: listOf(r.CPULimit, r.MemoryLimit)}
}

func listOf(cpu, memory string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i, text := range []string{cpu, memory} {
		if quantity, err := resource.ParseQuantity(text); err == nil {
			list[resizable[i]] = quantity
		}
	}
	return list
}

// changed is zero where both are the same.
func changed(from, to Resources) ResourceChange {
	if from == to {
		return ResourceChange{}
	}
	return ResourceChange{From: from, To: to}
}

func resourceChange(from, to corev1.ResourceRequirements) ResourceChange {
	return changed(ResourcesOf(from), ResourcesOf(to))
}

// of returns the request and the limit of that resource.
func (r Resources) of(name corev1.ResourceName) [2]string {
	if name == corev1.ResourceCPU {
		return [2]string{r.CPURequest, r.CPULimit}
	}
	return [2]string{r.MemoryRequest, r.MemoryLimit}
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
	for _, name := range resizable {
		quantity := gets[name]
		if current, is := has[name]; is && current.Cmp(quantity) != 0 {
			operations = append(operations, jsonpatch.NewOperation("replace", patches.Pointer(append(path, string(name))...), quantity.String()))
		}
	}
	return operations
}
