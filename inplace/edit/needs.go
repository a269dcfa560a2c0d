package edit

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
)

// ChangesTo returns the changes that turn the living containers of a pod into those of the new template. A container may run the
// template's image under another name, unless it is the name that changes. The function runs returns the ID of the image that a
// container of the pod runs. The function resizes reports whether the container's CPU and memory become those of the template.
func (c ContainerChanges) ChangesTo(pod *corev1.Pod, target []corev1.Container, runs func(container string) string,
	resizes func(container string) bool) ContainerChanges {
	return differing(pod, target, func(have, want *corev1.Container) ContainerChange {
		planned, change := c.of(have.Name), changeTo(have, want, resizes(have.Name))
		if planned.NewImage() && change.NewImage() || !IsNameOf(have.Image, want.Image) {
			return change
		}
		change.Image, change.Restart = ImageChange{}, planned.Restart
		if planned.Restart {
			change.Image = renaming(have, want.Image, runs(have.Name))
		}
		return change
	})
}

// renaming returns the change to another name of the image. It is zero if there is no other name: see Nameless.
func renaming(have *corev1.Container, image, running string) ImageChange {
	name := anotherName(have, image, running)
	if name == "" {
		return ImageChange{}
	}
	return ImageChange{From: have.Image, To: name}
}

// Renaming returns the changes, and those by which these containers of the pod restart, too. A container that gets an image already, or
// whose image has no other name, is left as it is.
func (c ContainerChanges) Renaming(pod *corev1.Pod, containers []corev1.Container, runs func(container string) string) ContainerChanges {
	for i := range containers {
		have, change := Named(&pod.Spec, containers[i].Name), c.of(containers[i].Name)
		if have == nil || change.NewImage() {
			continue
		}
		if change.Image = renaming(have, have.Image, runs(have.Name)); change.NewImage() {
			change.Restart = true
			c = slices.DeleteFunc(slices.Clone(c), func(other ContainerChange) bool { return other.Container == change.Container })
			c = append(c, change)
		}
	}
	return c
}

// RestartOf returns the change by which that container of the live pod restarts. The template is that of the pod's own revision. There is
// no new image in the change if there is no other name for the container's.
func RestartOf(pod *corev1.Pod, template []corev1.Container, container string, running string) ContainerChange {
	have := Named(&pod.Spec, container)
	image := have.Image
	for i := range template {
		if template[i].Name == container && IsNameOf(have.Image, template[i].Image) {
			image = template[i].Image
		}
	}
	return ContainerChange{Container: container, Image: renaming(have, image, running), Restart: true}
}

// of returns the change of the container.
func (c ContainerChanges) of(container string) ContainerChange {
	for _, change := range c {
		if change.Container == container {
			return change
		}
	}
	return ContainerChange{Container: container}
}

// edited returns the changes of these containers after the edit of each.
func (c ContainerChanges) edited(containers []corev1.Container, edit func(*ContainerChange, corev1.Container)) ContainerChanges {
	var all ContainerChanges
	for _, container := range containers {
		change := c.of(container.Name)
		if edit(&change, container); change.Left() {
			all = append(all, change)
		}
	}
	return all
}

// WithoutRestart returns what remains of the changes for a pod whose containers have already been restarted for them.
func (c ContainerChanges) WithoutRestart() ContainerChanges {
	var rest ContainerChanges
	for _, change := range c {
		if change.Restart {
			change.Image, change.Restart = ImageChange{}, false
		}
		if change.Left() {
			rest = append(rest, change)
		}
	}
	return rest
}

// RestartsOnly reports whether any container restarts without another image.
func (c ContainerChanges) RestartsOnly() bool {
	return slices.ContainsFunc(c, func(change ContainerChange) bool { return change.Restart })
}

// WithoutOtherName returns the first container of a pod that is to restart but has no other name for its image. It is empty if there is
// none.
func (c ContainerChanges) WithoutOtherName() string {
	for change := range c.Restarting() {
		if change.Restart && !change.NewImage() {
			return change.Container
		}
	}
	return ""
}

// Unrestartable returns why a container of the live pod cannot restart for the change although its template permits it. It is nil if
// the container can.
func (c Change) Unrestartable(pod *corev1.Pod) *inplace.Reason {
	if !c.AsNew || !c.Containers.RestartsOnly() {
		return nil
	}
	reasons := initReasons(pod.Spec.InitContainers, "")
	if len(reasons) == 0 {
		return nil
	}
	return &inplace.Reason{Code: inplace.CodeRestart, Message: fmt.Sprintf("pod %s: %s", pod.Name, reasons[0].Message)}
}

// Differing returns the changes that make the pod's living containers exactly like the template's containers of the same names:
// their images, if the template has any, and the CPU and memory of the containers for which resizes is true.
func Differing(pod *corev1.Pod, template []corev1.Container, resizes func(container string) bool) ContainerChanges {
	return differing(pod, template, func(have, want *corev1.Container) ContainerChange {
		change := changeTo(have, want, resizes(have.Name))
		change.Restart = change.NewImage() && (IsNameOf(have.Image, want.Image) || IsNameOf(want.Image, have.Image))
		return change
	})
}

// differing returns the changes between the living containers and the template's containers of the same names.
func differing(pod *corev1.Pod, template []corev1.Container, change func(have, want *corev1.Container) ContainerChange) ContainerChanges {
	var changes ContainerChanges
	for i := range template {
		have := Named(&pod.Spec, template[i].Name)
		if have == nil {
			continue
		}
		if change := change(have, &template[i]); change.Left() {
			changes = append(changes, change)
		}
	}
	return changes
}

// Nothing returns false: no container is resized.
func Nothing(string) bool { return false }

// changeTo returns the change of a container that becomes like another. It leaves alone a request or limit that only one of the two
// has: no running container can lose a request or a limit, and none gets one that it could not lose again.
func changeTo(have, want *corev1.Container, resizes bool) ContainerChange {
	change := ContainerChange{Container: have.Name}
	if want.Image != "" && have.Image != want.Image {
		change.Image = ImageChange{From: have.Image, To: want.Image}
	}
	if resizes {
		has := AmountsOf(have.Resources)
		written := WrittenAmounts(have.Resources).Like(WrittenAmounts(want.Resources))
		change.Resources = changed(*have, has, has.Like(AmountsOf(want.Resources)), written)
	}
	return change
}
