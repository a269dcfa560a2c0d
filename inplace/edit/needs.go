package edit

import (
	corev1 "k8s.io/api/core/v1"
)

// Differing is what makes the pod's containers like those of the template that have the same names: their images, where there are any, and of those that
// resizes says the CPU and memory.
func Differing(pod *corev1.Pod, template []corev1.Container, resizes func(container string) bool) ContainerChanges {
	var changes ContainerChanges
	for i := range template {
		want := &template[i]
		for j := range pod.Spec.Containers {
			have := &pod.Spec.Containers[j]
			if have.Name != want.Name {
				continue
			}
			if change := becoming(have, want, resizes(want.Name)); change.Left() {
				changes = append(changes, change)
			}
		}
	}
	return changes
}

// Nothing is resized.
func Nothing(string) bool { return false }

// becoming is what changes of a container that becomes like another. Of CPU and memory it keeps what only one of them has: no running container can
// lose a request or a limit, and none gets what it could not lose again.
func becoming(have, want *corev1.Container, resizes bool) ContainerChange {
	change := ContainerChange{Container: have.Name}
	if want.Image != "" && have.Image != want.Image {
		change.Image = ImageChange{From: have.Image, To: want.Image}
	}
	if resizes {
		has := ResourcesOf(have.Resources)
		change.Resources = changed(has, has.like(ResourcesOf(want.Resources)))
	}
	return change
}
