package edit

import (
	"iter"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/patches"
)

// The *living* containers of a pod run for as long as the pod does, and its kubelet restarts them when their image changes. They
// are the ordinary containers and the sidecars. Other init containers have ended before, and never run again. No two containers of
// a pod have the same name, so a name also identifies the list. The kubelet kills and starts only the containers that have changed
// (computePodActions in pkg/kubelet/kuberuntime/kuberuntime_manager.go). Stayput does not resize sidecars.

// IsSidecar reports whether an init container is a sidecar. It is IsRestartableInitContainer in pkg/api/v1/pod/util.go of
// Kubernetes.
func IsSidecar(init *corev1.Container) bool {
	return init.RestartPolicy != nil && *init.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// Living returns the living containers: the ordinary ones, then sidecars.
func Living(spec *corev1.PodSpec) []corev1.Container {
	all := spec.Containers[:len(spec.Containers):len(spec.Containers)]
	for i := range spec.InitContainers {
		if IsSidecar(&spec.InitContainers[i]) {
			all = append(all, spec.InitContainers[i])
		}
	}
	return all
}

// EachLiving yields the living containers without copying them.
func EachLiving(spec *corev1.PodSpec) iter.Seq[*corev1.Container] {
	return func(yield func(*corev1.Container) bool) {
		for _, container := range living(spec) {
			if !yield(container) {
				return
			}
		}
	}
}

// Named returns the living container of that name, or nil if there is none.
func Named(spec *corev1.PodSpec, name string) *corev1.Container {
	for _, container := range living(spec) {
		if container.Name == name {
			return container
		}
	}
	return nil
}

// SidecarNamed reports whether a sidecar has that name.
func SidecarNamed(spec *corev1.PodSpec, name string) bool {
	for i := range spec.InitContainers {
		if spec.InitContainers[i].Name == name {
			return IsSidecar(&spec.InitContainers[i])
		}
	}
	return false
}

// place is the position of a container in the spec of its pod.
type place struct {
	list  string
	index int
}

const (
	containersList     = "containers"
	initContainersList = "initContainers"
)

// pointer returns the JSON pointer to a field of the container.
func (p place) pointer(field string) string {
	return patches.Pointer("spec", p.list, strconv.Itoa(p.index), field)
}

// living yields the living containers with their places, in the order of Living.
func living(spec *corev1.PodSpec) iter.Seq2[place, *corev1.Container] {
	return func(yield func(place, *corev1.Container) bool) {
		for i := range spec.Containers {
			if !yield(place{containersList, i}, &spec.Containers[i]) {
				return
			}
		}
		for i := range spec.InitContainers {
			if IsSidecar(&spec.InitContainers[i]) && !yield(place{initContainersList, i}, &spec.InitContainers[i]) {
				return
			}
		}
	}
}
