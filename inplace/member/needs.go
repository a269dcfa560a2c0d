package member

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/edit"
)

// Origin is the revision that a pod's identity tells of.
type Origin struct {
	// Own are the containers of its template, Change that from its template to the target's; nil where it is none. It is shared by the pods of the
	// revision.
	Own    []corev1.Container
	Change *edit.Change
	// OfTarget: it is the target itself.
	OfTarget bool
	// ByLabel: the identity is a label alone, which no owner contradicts.
	ByLabel bool
}

// Needs is what is left to do until the pod is one of the target.
func (s *State) Needs() edit.Change {
	var needs edit.Change
	if s.Change != nil {
		needs = *s.Change
	}
	needs.Containers = s.Containers
	return needs
}

// stillDiffer are the changes of containers that make the pod one of the target with those. One that is the target's already needs none,
// whatever admission would make of a new one, unless it was on its way elsewhere.
func (s *State) stillDiffer(target []corev1.Container) edit.ContainerChanges {
	if s.OfTarget {
		return s.Back
	}
	return edit.Differing(s.Pod, target, s.resizes)
}

// resizes tells whether the container's CPU and memory are for the update to change: both templates say so, or they are on their way already. What
// else they are, as by somebody who resizes pods by himself, is not fought over.
func (s *State) resizes(container string) bool {
	return s.Change != nil && s.Change.Resizes(container) || s.Move.Resizes(container)
}

// rewrites are the containers that have another image than their template's, unless it is ours.
func (s *State) rewrites() edit.ContainerChanges {
	var rewritten edit.ContainerChanges
	for change := range edit.Differing(s.Pod, s.Own, edit.Nothing).NewImages() {
		if s.Move.Back[change.Container] == "" {
			rewritten = append(rewritten, change)
		}
	}
	return rewritten
}
