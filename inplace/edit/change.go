package edit

import (
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/amounts"
	"github.com/stayput/stayput/inplace/patches"
)

// Change is what pods need to become those of another template: all that were made from one, or one that lives.
type Change struct {
	// Containers are those of which something changes, of two templates in the order of Living. Init containers are not among them, but sidecars.
	Containers ContainerChanges
	// Labels are those that change, and Annotations those of them that are on the allow-list; by key.
	Labels, Annotations []patches.EntryChange
	// Tolerations are those that are added.
	Tolerations []corev1.Toleration
	// NotAgain says which init containers, which have ended, do not run again although containers restart; empty if none.
	NotAgain string
	// Displaced are why pods to which admission gave its default tolerations cannot take the change: new ones would not get them. It gives none to
	// pods of DaemonSets.
	Displaced inplace.Reasons
	// Reasons are why running pods cannot take the change; none if they can.
	Reasons inplace.Reasons
}

// ContainerChange is what changes of a container.
type ContainerChange struct {
	Container string
	// Image it gets; zero where it keeps its own.
	Image ImageChange
	// Resources it gets; zero where it keeps its own.
	Resources ResourceChange
	// Restart: it restarts with the image it has, in a live pod under another name of that. Between templates it can come with another image, which a
	// live pod may have already.
	Restart bool
}

// ContainerChanges are those of several containers, each of another.
type ContainerChanges []ContainerChange

// ImageChange is an image and the one that takes its place.
type ImageChange struct{ From, To string }

// ResourceChange is CPU and memory, and those that take their place.
type ResourceChange struct {
	From, To amounts.Amounts
	// Written is To as it is to be spelled.
	Written amounts.Amounts
	// Restarts: the container's resizePolicy asks for a restart with one of those that change.
	Restarts bool
}

// Left reports whether anything changes.
func (c ContainerChange) Left() bool { return c != ContainerChange{Container: c.Container} }

// Restarts reports whether the container restarts for it.
func (c ContainerChange) Restarts() bool { return c.NewImage() || c.Restart || c.Resources.Restarts }

// NewImage reports whether it gets another image, or another name of the one it has.
func (c ContainerChange) NewImage() bool { return c.Image != ImageChange{} }

// Resizes reports whether it gets other CPU or memory.
func (c ContainerChange) Resizes() bool { return c.Resources != ResourceChange{} }

// InPlace reports whether running pods can take the change.
func (c Change) InPlace() bool { return len(c.Reasons) == 0 }

// Left reports whether there is anything to do in place.
func (c Change) Left() bool {
	return len(c.Containers) > 0 || len(c.Labels) > 0 || len(c.Annotations) > 0 || len(c.Tolerations) > 0
}

// None reports whether nothing changes at all.
func (c Change) None() bool { return c.InPlace() && !c.Left() }

// Restarts reports whether any container does.
func (c Change) Restarts() bool { return c.Containers.Restarts() }

// RestartsContainer reports whether that container does.
func (c Change) RestartsContainer(name string) bool {
	return slices.ContainsFunc(c.Containers, func(c ContainerChange) bool { return c.Container == name && c.Restarts() })
}

// OfContainers is as much of the change as containers are concerned.
func (c Change) OfContainers() Change { return Change{Containers: c.Containers} }

// Resizes reports whether that container gets other CPU or memory.
func (c Change) Resizes(container string) bool {
	return slices.ContainsFunc(c.Containers, func(c ContainerChange) bool { return c.Container == container && c.Resizes() })
}

// Restarts reports whether any container does.
func (c ContainerChanges) Restarts() bool { return slices.ContainsFunc(c, ContainerChange.Restarts) }

// Resizes reports whether any container gets other CPU or memory.
func (c ContainerChanges) Resizes() bool { return slices.ContainsFunc(c, ContainerChange.Resizes) }

// RestartsToResize reports whether any container restarts for its CPU or memory.
func (c ContainerChanges) RestartsToResize() bool {
	return slices.ContainsFunc(c, func(c ContainerChange) bool { return c.Resources.Restarts })
}

// Resizing is as much of the changes as CPU and memory are concerned.
func (c ContainerChanges) Resizing() ContainerChanges {
	var resizing ContainerChanges
	for change := range c.those(ContainerChange.Resizes) {
		resizing = append(resizing, ContainerChange{Container: change.Container, Resources: change.Resources})
	}
	return resizing
}

// Restarting are the containers that restart when the change is made in place.
func (c ContainerChanges) Restarting() iter.Seq[ContainerChange] {
	return c.those(ContainerChange.Restarts)
}

// NewImages are the containers that get another image, or another name of the one they have.
func (c ContainerChanges) NewImages() iter.Seq[ContainerChange] {
	return c.those(ContainerChange.NewImage)
}

func (c ContainerChanges) those(which func(ContainerChange) bool) iter.Seq[ContainerChange] {
	return func(yield func(ContainerChange) bool) {
		for _, container := range c {
			if which(container) && !yield(container) {
				return
			}
		}
	}
}

// How verdicts begin.
const (
	InPlacePrefix  = "in place: "
	RecreatePrefix = "recreate: "
)

// String is the verdict on one line, for the decision annotation, warnings and events.
func (c Change) String() string {
	switch {
	case !c.InPlace():
		return RecreatePrefix + c.Reasons.String()
	case c.None():
		return "no change"
	}
	does := "no restart"
	if c.Restarts() {
		does = "restarts " + inplace.FirstOf(c.restarting(), ", ")
	}
	if c.Containers.Resizes() {
		does = "resizes " + inplace.FirstOf(c.resizing(), ", ") + ", " + does
	}
	return InPlacePrefix + does
}

// restarting names the containers that restart.
func (c Change) restarting() []string { return c.Containers.named(ContainerChange.Restarts) }

// resizing names the containers that get other CPU or memory.
func (c Change) resizing() []string { return c.Containers.named(ContainerChange.Resizes) }

func (c ContainerChanges) named(which func(ContainerChange) bool) []string {
	var names []string
	for container := range c.those(which) {
		names = append(names, container.Container)
	}
	return names
}

// keysOf names the labels or annotations that change.
func keysOf(changes []patches.EntryChange) []string {
	var keys []string
	for _, change := range changes {
		keys = append(keys, change.Key)
	}
	return keys
}
