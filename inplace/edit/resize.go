package edit

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/patches"
)

// ValidatePodResize in pkg/apis/core/validation decides whether a running pod can get other CPU and memory: its QoS class stays,
// nothing is removed, and the pod is not a Windows pod and has no pod-level resources. Stayput adds no request or limit either,
// because it could not be removed again. What only a node knows - free capacity, swap, static CPUs - its kubelet reports later.
//
// A new image comes after the resize, so that the container restarts once. If its resizePolicy is RestartContainer, it would restart twice:
// the kubelet acts on each change by itself, even if the two are written a few milliseconds apart (measured with Kubernetes 1.36.3). So
// that policy together with a new image or a restart of the same container is native.

// resizeReasons returns why pods of one spec cannot, or should not, get the CPU and memory of the other.
func resizeReasons(was, is corev1.PodSpec, change Change, rules inplace.Rules) inplace.Reasons {
	var reasons inplace.Reasons
	for i, container := range is.Containers {
		for _, c := range change.Containers {
			if c.Container == container.Name && c.Resizes() {
				reasons = reasons.And(containerReasons(container, c, i, rules)...)
			}
		}
	}
	if from, to := QOS(was), QOS(is); from != to {
		reasons = reasons.And(resourcesReason("/spec", fmt.Sprintf("the QoS class changes from %s to %s", from, to)))
	}
	if is.OS != nil && is.OS.Name == corev1.Windows {
		reasons = reasons.And(resourcesReason("/spec/os", "pods of Windows are not resized"))
	}
	if is.Resources != nil {
		reasons = reasons.And(resourcesReason("/spec/resources", "the pod has pod-level resources"))
	}
	return reasons.And(resourceFieldReasons(is, change.Containers)...)
}

func containerReasons(container corev1.Container, c ContainerChange, index int, rules inplace.Rules) inplace.Reasons {
	change, path := c.Resources, patches.Pointer("spec", "containers", strconv.Itoa(index), "resources")
	var reasons inplace.Reasons
	for _, name := range Resizable {
		from, to := change.From.Both(name), change.To.Both(name)
		switch policy := resizePolicy(container, name); {
		case from == to:
		case (from[0] == "") != (to[0] == "") || (from[1] == "") != (to[1] == ""):
			reasons = reasons.And(resourcesReason(path,
				fmt.Sprintf("container %s gains or loses a request or limit of %s, and a running container cannot lose one",
					container.Name, name)))
		case policy == corev1.RestartContainer && (c.NewImage() || c.Restart):
			reasons = reasons.And(resourcesReason(path, fmt.Sprintf(
				"the resizePolicy of container %s asks for a restart when its %s changes, and it also restarts for another change: it would restart twice",
				container.Name, name)))
		case rules.Resize == inplace.ResizeNone:
			reasons = reasons.And(resourcesReason(path, fmt.Sprintf("%s of container %s changed, and annotation %s is %q",
				name, container.Name, inplace.AnnotationResize, rules.Resize)))
		case rules.Resize == inplace.ResizeDeclared && policy == "":
			reasons = reasons.And(resourcesReason(path,
				fmt.Sprintf("%s of container %s changed, and neither its resizePolicy nor annotation %s says whether it needs a restart",
					name, container.Name, inplace.AnnotationResize)))
		}
	}
	return reasons
}

func resourcesReason(path, message string) inplace.Reason {
	return inplace.Reason{Code: inplace.CodeResources, Path: path, Message: message}
}

// resizePolicy returns the container's policy for that resource. It is empty if there is none. Both templates have the same policy,
// or the change is native.
func resizePolicy(container corev1.Container, name corev1.ResourceName) corev1.ResourceResizeRestartPolicy {
	for _, policy := range container.ResizePolicy {
		if policy.ResourceName == name {
			return policy.RestartPolicy
		}
	}
	return ""
}

// resourceFieldReasons returns where the pod reads an amount that changes: a process that has read the amount keeps using the old
// value.
func resourceFieldReasons(spec corev1.PodSpec, changes ContainerChanges) inplace.Reasons {
	var reasons inplace.Reasons
	for _, container := range slices.Concat(spec.Containers, spec.InitContainers) {
		for _, env := range container.Env {
			if env.ValueFrom != nil {
				reasons = reasons.And(changes.readBy(env.ValueFrom.ResourceFieldRef, container.Name, "variable "+env.Name)...)
			}
		}
	}
	for _, volume := range spec.Volumes {
		for _, item := range downwardItems(volume) {
			reasons = reasons.And(changes.readBy(item.ResourceFieldRef, "", "volume "+volume.Name)...)
		}
	}
	return reasons
}

// readBy returns a reason if the amount that the reader reads changes. A selector that names no container reads the reader's own
// container.
func (c ContainerChanges) readBy(selector *corev1.ResourceFieldSelector, own, reader string) inplace.Reasons {
	if selector == nil {
		return nil
	}
	of := cmp.Or(selector.ContainerName, own)
	if resources := c.of(of).Resources; resources.From.Named(selector.Resource) == resources.To.Named(selector.Resource) {
		return nil
	}
	message := fmt.Sprintf("%s of container %s is read by %s through the downward API", selector.Resource, of, reader)
	return inplace.Reasons{{Code: inplace.CodeDownwardAPI, Path: "/spec", Message: message}}
}
