package podstate

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
)

// A pod is half-way when a write of its move has been made and the last has not: its spec is no longer what its identity says, whatever of
// it was written and for whatever reason not all at once. We may die just then, and the user may undo the update, so it shows by itself that
// something is left to do:
//
//   - A pod of a Deployment keeps its identity, label and owner: until its containers have followed nobody may count it as updated. Its labels
//     stay as well. Which containers were to change is in the mark; what they go back to, when the update is given back, its own ReplicaSet says, and
//     a dry run of a pod of that, never the mark: an annotation can be anybody's.
//   - A pod of a DaemonSet gets an identity that no revision has, with all else it needs: if we died, it would be replaced. With its old one an
//     undo would make the native controller take it for updated. Of which revision it is, the mark says (Move.Hash): the one it is on the way to, or,
//     when only a resize was noted, the one it was.

const (
	// HashPartial stands in place of the hash of a pod that is half-way. It is no revision's.
	HashPartial = "updating-in-place"
)

// PartiallyPatched reports whether the pod is.
func (s *State) PartiallyPatched() bool {
	if s.ByLabel {
		return HasPartialHash(s.Pod)
	}
	return s.Move.PartiallyPatched()
}

// wayBack is nothing where admission did not say what new pods get, or may not be followed, and the mark does not bear it out.
func (s *State) wayBack() edit.ContainerChanges {
	doubt := s.NewPods.Unknown != "" || s.NewPods.UpdateRevision != "" && s.ByMark
	if doubt && !s.Move.Agrees(s.NewPods.Containers) {
		return nil
	}
	return s.Move.WayBack(s.Pod, s.NewPods.Containers)
}

// HasPartialHash reports whether the pod has the identity that no revision has.
func HasPartialHash(pod *corev1.Pod) bool {
	return pod.Labels[inplace.LabelRevisionHash] == HashPartial
}
