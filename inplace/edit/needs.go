package edit

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
)

// Becoming is what makes the containers of a pod those of the template that the change leads to. One may run the template's image under another name
// of that, unless it is the name that changes. Running are the IDs of the images that the pod's containers run, by container.
func (c Change) Becoming(pod *corev1.Pod, target []corev1.Container, running map[string]string) []ContainerChange {
	var changes []ContainerChange
	for _, want := range target {
		for _, have := range pod.Spec.Containers {
			if have.Name != want.Name {
				continue
			}
			if change := c.becoming(have, want, running[have.Name]); change.Left() {
				changes = append(changes, change)
			}
		}
	}
	return changes
}

// becoming has no image for a container that is to restart and has no other name: see Nameless.
func (c Change) becoming(have, want corev1.Container, running string) ContainerChange {
	planned, change := c.of(have.Name), becoming(have, want)
	if planned.NewImage() || !IsNameOf(have.Image, want.Image) {
		return change
	}
	change.Image, change.Restart = ImageChange{}, planned.Restart
	if name := anotherName(have, want.Image, running); change.Restart && name != "" {
		change.Image = ImageChange{From: have.Image, To: name}
	}
	return change
}

// of is what changes of the container.
func (c Change) of(container string) ContainerChange {
	for _, change := range c.Containers {
		if change.Container == container {
			return change
		}
	}
	return ContainerChange{Container: container}
}

// WithoutRestart is the change of a pod whose containers have been restarted for it already.
func (c Change) WithoutRestart() Change {
	containers := c.Containers
	c.Containers = nil
	for _, change := range containers {
		if change.Restart = false; change.Left() {
			c.Containers = append(c.Containers, change)
		}
	}
	return c
}

// Nameless is the first container of a pod that is to restart and has no other name for its image; empty if there is none.
func (c Change) Nameless() string {
	for change := range c.Restarting() {
		if !change.NewImage() {
			return change.Container
		}
	}
	return ""
}

// Unrestartable is why a container of the live pod cannot restart for the change although its template lets it; nil if it can.
func (c Change) Unrestartable(pod *corev1.Pod) *inplace.Reason {
	renews := slices.ContainsFunc(c.Containers, func(change ContainerChange) bool { return change.Restart })
	if reasons := initReasons(pod.Spec.InitContainers); renews && len(reasons) > 0 {
		return &inplace.Reason{Code: inplace.CodeRestart, Message: fmt.Sprintf("pod %s: %s", pod.Name, reasons[0].Message)}
	}
	return nil
}

// Differing is what makes the pod's containers exactly like those of the template that have the same names.
func Differing(pod *corev1.Pod, template []corev1.Container) []ContainerChange {
	var changes []ContainerChange
	for _, want := range template {
		for _, have := range pod.Spec.Containers {
			change := becoming(have, want)
			change.Restart = change.NewImage() && (IsNameOf(have.Image, want.Image) || IsNameOf(want.Image, have.Image))
			if have.Name == want.Name && change.Left() {
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
