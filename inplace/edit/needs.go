package edit

import (
	corev1 "k8s.io/api/core/v1"
)

// Differing is what makes the pod's containers like those of the template that have the same names, as far as they live.
func Differing(pod *corev1.Pod, template []corev1.Container) ContainerChanges {
	var changes ContainerChanges
	for i := range template {
		have := Named(&pod.Spec, template[i].Name)
		if have == nil {
			continue
		}
		if change := becoming(have, &template[i]); change.Left() {
			changes = append(changes, change)
		}
	}
	return changes
}

// becoming is what changes of a container that becomes like another.
func becoming(have, want *corev1.Container) ContainerChange {
	change := ContainerChange{Container: have.Name}
	if have.Image != want.Image {
		change.Image = ImageChange{From: have.Image, To: want.Image}
	}
	return change
}
