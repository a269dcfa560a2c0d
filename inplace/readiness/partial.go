package readiness

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/amounts"
	"github.com/stayput/stayput/inplace/edit"
)

// PartiallyPatched reports whether writes of a move have been made, or noted, and the last has not.
func (m Move) PartiallyPatched() bool { return len(m.Back) > 0 || len(m.Resize) > 0 }

// WayBack is what makes a pod that is half-way again what its identity says: the containers of its own revision. The mark tells which of them were to
// change, and no more: others may have written it. What still is as the mark says that it was has not been written.
func (m Move) WayBack(pod *corev1.Pod, own []corev1.Container) edit.ContainerChanges {
	var changed []corev1.Container
	for _, container := range own {
		have := edit.Named(&pod.Spec, container.Name)
		if have == nil {
			continue
		}
		back := corev1.Container{Name: container.Name}
		if image, notedSurge := m.Back[container.Name]; notedSurge && image != have.Image {
			back.Image = container.Image
		}
		if resized := m.Resize[container.Name]; m.Resizes(container.Name) && resized.Back != amounts.Of(have.Resources) {
			back.Resources = container.Resources
		}
		changed = append(changed, back)
	}
	return edit.Differing(pod, changed, m.Resizes)
}

// Agrees reports whether the mark says that these containers, of the pod's own revision, are what the pod had.
func (m Move) Agrees(own []corev1.Container) bool {
	for _, container := range own {
		image, notedSurge := m.Back[container.Name]
		if notedSurge && image != container.Image {
			return false
		}
		if had := m.Resize[container.Name].Back; m.Resizes(container.Name) && had != had.Like(amounts.Of(container.Resources)) {
			return false
		}
	}
	return true
}

// Remaining is what Back has to say when the change is made without the identity that goes with it: what the pod had under its labels, as far as
// that has changed by now or changes next. An image by another name than its own revision's is noted by that one.
func (m Move) Remaining(does edit.ContainerChanges, own []corev1.Container) map[string]string {
	back := map[string]string{}
	for change := range does.NewImages() {
		back[change.Container] = change.Image.From
	}
	for _, container := range own {
		if had, notedSurge := back[container.Name]; notedSurge && edit.IsNameOf(had, container.Image) {
			back[container.Name] = container.Image
		}
	}
	maps.Copy(back, m.Back)
	return back
}
