package readiness

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/edit"
)

// WayBack is what makes a pod that is half-way again what its identity says.
func (m Move) WayBack(pod *corev1.Pod) edit.ContainerChanges {
	if len(m.Back) == 0 && len(m.Resize) == 0 {
		return nil
	}
	before := map[string]corev1.Container{}
	for name, image := range m.Back {
		before[name] = corev1.Container{Name: name, Image: image}
	}
	for name, resized := range m.Resize {
		before[name] = corev1.Container{Name: name, Image: m.Back[name], Resources: resized.Back.Requirements()}
	}
	var all []corev1.Container
	for _, name := range slices.Sorted(maps.Keys(before)) {
		all = append(all, before[name])
	}
	return edit.Differing(pod, all, m.Resizes)
}

// Leaves is what Back has to say when the change is made without the identity that goes with it: what the pod had under its labels, as far as
// that has changed by now or changes next.
func (m Move) Leaves(does edit.ContainerChanges) map[string]string {
	back := map[string]string{}
	for change := range does.NewImages() {
		back[change.Container] = change.Image.From
	}
	maps.Copy(back, m.Back)
	return back
}
