package member

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
)

// A pod is half-way when a write of its move has been made and the last has not: its spec is no longer what its identity says, whatever of
// it was written and for whatever reason not all at once. We may die just then, and the user may undo the update, so it shows by itself that
// something is left to do:
//
//   - A pod of a Deployment keeps its identity, label and owner: until its containers have followed nobody may count it as updated. Its labels
//     stay as well. What it had under that identity is in the mark (Move.Back), and whoever gives the update back restores it.
//   - A pod of a DaemonSet gets an identity that no revision has, with all else it needs: if we died, it would be replaced. With its old one an
//     undo would make the native controller take it for updated. Of which revision it is, the mark says (Move.Hash): the one it is on the way to, or,
//     when only a resize was noted, the one it was.

const (
	// HashBetween stands in place of the hash of a pod that is half-way. It is no revision's.
	HashBetween = "updating-in-place"
)

// IsHalfway tells whether the pod is.
func (s *State) IsHalfway() bool {
	if s.ByLabel {
		return Between(s.Pod)
	}
	return len(s.Back) > 0 || len(s.Move.Resize) > 0
}

// Between tells whether the pod has the identity that no revision has.
func Between(pod *corev1.Pod) bool { return pod.Labels[inplace.LabelRevisionHash] == HashBetween }
