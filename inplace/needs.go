package inplace

import corev1 "k8s.io/api/core/v1"

// origin is the revision that a pod's identity tells of.
type origin struct {
	// own are the containers of its template, change that from its template to the target's.
	own    []corev1.Container
	change Change
	// ofTarget: it is the target itself.
	ofTarget bool
	// byLabel: the identity is a label alone, which no owner contradicts.
	byLabel bool
}

// stillNeeds is the change that makes the pod one of the target with those containers. One that is the target's already needs nothing,
// whatever admission would make of a new one, unless it was on its way elsewhere.
func (s *podState) stillNeeds(target []corev1.Container) Change {
	needs := s.change
	needs.Containers = differing(s.pod, target)
	if s.ofTarget {
		needs.Containers = s.back.Containers
	}
	return needs
}

// rewrites are the containers that have another image than their template's, unless it is ours.
func (s *podState) rewrites() []ContainerChange {
	var rewritten []ContainerChange
	for change := range (Change{Containers: differing(s.pod, s.own)}).NewImages() {
		if s.move.Back[change.Container] == "" {
			rewritten = append(rewritten, change)
		}
	}
	return rewritten
}

// differing is what makes the pod's containers like those of the template that have the same names.
func differing(pod *corev1.Pod, template []corev1.Container) []ContainerChange {
	var changes []ContainerChange
	for _, want := range template {
		for _, have := range pod.Spec.Containers {
			if change := becoming(have, want); have.Name == want.Name && change.Left() {
				changes = append(changes, change)
			}
		}
	}
	return changes
}

// becoming is what changes of a container that becomes like another.
func becoming(have, want corev1.Container) ContainerChange {
	change := ContainerChange{Container: have.Name}
	if have.Image != want.Image {
		change.Image = ImageChange{From: have.Image, To: want.Image}
	}
	return change
}
