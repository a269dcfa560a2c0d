package edit

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/amounts"
)

// Becoming is what makes the containers of a pod those of the template that the changes lead to, as far as they live. One may run the template's
// image under another name of that, unless it is the name that changes. Runs tells the ID of the image that a container of the pod runs, resizes whether its
// CPU and memory become those of the template.
func (c ContainerChanges) Becoming(pod *corev1.Pod, target []corev1.Container, runs func(container string) string, resizes func(container string) bool) ContainerChanges {
	return differing(pod, target, func(have, want *corev1.Container) ContainerChange {
		planned, change := c.of(have.Name), becoming(have, want, resizes(have.Name))
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

// renaming is zero where there is no other name: see Nameless.
func renaming(have *corev1.Container, image, running string) ImageChange {
	name := anotherName(have, image, running)
	if name == "" {
		return ImageChange{}
	}
	return ImageChange{From: have.Image, To: name}
}

// of is what changes of the container.
func (c ContainerChanges) of(container string) ContainerChange {
	for _, change := range c {
		if change.Container == container {
			return change
		}
	}
	return ContainerChange{Container: container}
}

// WithoutRestart are the changes of a pod whose containers have been restarted for them already.
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

// Renew reports whether some container restarts as it is.
func (c ContainerChanges) Renew() bool {
	return slices.ContainsFunc(c, func(change ContainerChange) bool { return change.Restart })
}

// Nameless is the first container of a pod that is to restart and has no other name for its image; empty if there is none.
func (c ContainerChanges) Nameless() string {
	for change := range c.Restarting() {
		if change.Restart && !change.NewImage() {
			return change.Container
		}
	}
	return ""
}

// Unrestartable is why a container of the live pod cannot restart for the changes although its template lets it; nil if it can.
func (c ContainerChanges) Unrestartable(pod *corev1.Pod) *inplace.Reason {
	if !c.Renew() {
		return nil
	}
	reasons := initReasons(pod.Spec.InitContainers, "")
	if len(reasons) == 0 {
		return nil
	}
	return &inplace.Reason{Code: inplace.CodeRestart, Message: fmt.Sprintf("pod %s: %s", pod.Name, reasons[0].Message)}
}

// Differing is what makes the pod's containers exactly like those of the template that have the same names, as far as they live: their images, where there
// are any, and of those that resizes says the CPU and memory.
func Differing(pod *corev1.Pod, template []corev1.Container, resizes func(container string) bool) ContainerChanges {
	return differing(pod, template, func(have, want *corev1.Container) ContainerChange {
		change := becoming(have, want, resizes(have.Name))
		change.Restart = change.NewImage() && (IsNameOf(have.Image, want.Image) || IsNameOf(want.Image, have.Image))
		return change
	})
}

// differing are the changes between containers that live and those of the template that have the same names.
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

// Nothing is resized.
func Nothing(string) bool { return false }

// becoming is what changes of a container that becomes like another. Of CPU and memory it keeps what only one of them has: no running container can
// lose a request or a limit, and none gets what it could not lose again.
func becoming(have, want *corev1.Container, resizes bool) ContainerChange {
	change := ContainerChange{Container: have.Name}
	if want.Image != "" && have.Image != want.Image {
		change.Image = ImageChange{From: have.Image, To: want.Image}
	}
	if resizes {
		has := amounts.Of(have.Resources)
		written := amounts.Written(have.Resources).Like(amounts.Written(want.Resources))
		change.Resources = changed(*have, has, has.Like(amounts.Of(want.Resources)), written)
	}
	return change
}
