package readiness

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/edit"
)

// PartiallyPatched reports whether writes of a move have been made, or noted, and the last one has not been made.
func (m Move) PartiallyPatched() bool { return len(m.Back) > 0 || len(m.Resize) > 0 }

// Revert returns the changes that turn a partially patched pod back into what its identity says: own are the containers of its own
// revision. The mark only says which of them were to change, because other clients may have written the mark. A container that is
// still as it was, according to the mark, has not been written.
func (m Move) Revert(pod *corev1.Pod, own []corev1.Container) edit.ContainerChanges {
	if !m.PartiallyPatched() {
		return nil
	}
	var changed []corev1.Container
	for _, container := range own {
		have := edit.Named(&pod.Spec, container.Name)
		if have == nil {
			continue
		}
		back := corev1.Container{Name: container.Name}
		if image, noted := m.Back[container.Name]; noted && image != have.Image {
			back.Image = container.Image
		}
		if resized := m.Resize[container.Name]; m.Resize.Of(container.Name) && resized.Back != edit.AmountsOf(have.Resources) {
			back.Resources = container.Resources
		}
		changed = append(changed, back)
	}
	return edit.Differing(pod, changed, m.Resize.Of)
}

// MatchesRevision reports whether the mark says the same of the pod's earlier containers as its own revision does.
func (m Move) MatchesRevision(own []corev1.Container) bool {
	for _, container := range own {
		image, noted := m.Back[container.Name]
		if noted && image != container.Image {
			return false
		}
		if had := m.Resize[container.Name].Back; m.Resize.Of(container.Name) && had != had.Like(edit.AmountsOf(container.Resources)) {
			return false
		}
	}
	return true
}

// Remaining returns what Back must say when the change is made without the identity that goes with it: the images that the pod had
// under its labels, of the containers that have changed or change next. If the pod has an image under another name than its own
// revision, the revision's name is noted.
func (m Move) Remaining(does edit.ContainerChanges, own []corev1.Container) map[string]string {
	back := map[string]string{}
	for change := range does.NewImages() {
		back[change.Container] = change.Image.From
	}
	for _, container := range own {
		if had, noted := back[container.Name]; noted && edit.IsNameOf(had, container.Image) {
			back[container.Name] = container.Image
		}
	}
	maps.Copy(back, m.Back)
	return back
}
