package member

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/edit"
)

// Origin is the revision that a pod's identity tells of.
type Origin struct {
	// Own are the containers of its template that live, change that from its template to the target's.
	Own    []corev1.Container
	Change edit.Change
	// OfTarget: it is the target itself.
	OfTarget bool
	// ByLabel: the identity is a label alone, which no owner contradicts.
	ByLabel bool
}

// stillNeeds is the change that makes the pod one of the target with those containers. One that is the target's already needs nothing,
// whatever admission would make of a new one, unless it was on its way elsewhere.
func (s *State) stillNeeds(target []corev1.Container) edit.Change {
	needs := s.Change
	needs.Containers = edit.Differing(s.Pod, target)
	if s.OfTarget {
		needs.Containers = s.Back.Containers
	}
	return needs
}

// rewrites are the containers that have another image than their template's, unless it is ours.
func (s *State) rewrites() []edit.ContainerChange {
	var rewritten []edit.ContainerChange
	for change := range (edit.Change{Containers: edit.Differing(s.Pod, s.Own)}).NewImages() {
		if s.Move.Back[change.Container] == "" {
			rewritten = append(rewritten, change)
		}
	}
	return rewritten
}
