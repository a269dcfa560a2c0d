package inplace

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// A pod is half-way when a write of its move has been made and the last has not: its spec is no longer what its identity says, whatever of
// it was written and for whatever reason not all at once. We may die just then, and the user may undo the update, so it shows by itself that
// something is left to do:
//
//   - A pod of a Deployment keeps its identity, label and owner: until its containers have followed nobody may count it as updated. Its labels
//     stay as well. What it had under that identity is in the mark (Move.Back), and whoever gives the update back restores it.
//   - A pod of a DaemonSet gets an identity that no revision has, with all else it needs: if we died, it would be replaced. With its old one an
//     undo would make the native controller take it for updated. Of which revision it is on the way to be one, the mark says (Move.Hash).

// isHalfway tells whether the pod is.
func (s *podState) isHalfway() bool {
	if s.byLabel {
		return between(s.pod)
	}
	return s.back.Left()
}

// between tells whether the pod has the identity that no revision has.
func between(pod *corev1.Pod) bool { return pod.Labels[labelRevisionHash] == hashBetween }

// wayBack is what makes a pod that is half-way again what its identity says.
func (m Move) wayBack(pod *corev1.Pod) Change {
	var before []corev1.Container
	for _, name := range slices.Sorted(maps.Keys(m.Back)) {
		before = append(before, corev1.Container{Name: name, Image: m.Back[name]})
	}
	return Change{Containers: differing(pod, before)}
}

// leaves is what Back has to say when the change is made without the identity that goes with it: what the pod had under its labels, as far as
// that has changed by now or changes next.
func (m Move) leaves(does Change) map[string]string {
	back := map[string]string{}
	for change := range does.NewImages() {
		back[change.Container] = change.Image.From
	}
	maps.Copy(back, m.Back)
	return back
}
