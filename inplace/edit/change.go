package edit

import (
	"iter"
	"slices"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/patches"
)

// Change is what pods need to become those of another template: all that were made from one, or one that lives.
type Change struct {
	// Containers are those of which something changes, init containers excepted; of two templates in their order.
	Containers []ContainerChange
	// Labels are those that change, and Annotations those of them that are on the allow-list; by key.
	Labels, Annotations []patches.EntryChange
	// Reasons are why running pods cannot take the change; none if they can.
	Reasons inplace.Reasons
}

// ContainerChange is what changes of a container.
type ContainerChange struct {
	Container string
	// Image it gets; zero where it keeps its own.
	Image ImageChange
	// Restart: it restarts with the image it has, in a live pod under another name of that.
	Restart bool
}

// ImageChange is an image and the one that takes its place.
type ImageChange struct{ From, To string }

// Left tells whether anything changes.
func (c ContainerChange) Left() bool { return c != ContainerChange{Container: c.Container} }

// Restarts tells whether the container restarts for it.
func (c ContainerChange) Restarts() bool { return c.NewImage() || c.Restart }

// NewImage tells whether it gets another image, or another name of the one it has.
func (c ContainerChange) NewImage() bool { return c.Image != ImageChange{} }

// InPlace tells whether running pods can take the change.
func (c Change) InPlace() bool { return len(c.Reasons) == 0 }

// Left tells whether there is anything to do in place.
func (c Change) Left() bool {
	return len(c.Containers) > 0 || len(c.Labels) > 0 || len(c.Annotations) > 0
}

// None tells whether nothing changes at all.
func (c Change) None() bool { return c.InPlace() && !c.Left() }

// Restarting are the containers that restart when the change is made in place.
func (c Change) Restarting() iter.Seq[ContainerChange] { return c.those(ContainerChange.Restarts) }

// NewImages are the containers that get another image, or another name of the one they have.
func (c Change) NewImages() iter.Seq[ContainerChange] { return c.those(ContainerChange.NewImage) }

func (c Change) those(which func(ContainerChange) bool) iter.Seq[ContainerChange] {
	return func(yield func(ContainerChange) bool) {
		for _, container := range c.Containers {
			if which(container) && !yield(container) {
				return
			}
		}
	}
}

// Restarts tells whether any container does.
func (c Change) Restarts() bool { return slices.ContainsFunc(c.Containers, ContainerChange.Restarts) }

// OfContainers is as much of the change as containers are concerned.
func (c Change) OfContainers() Change { return Change{Containers: c.Containers} }

// OfMetadata is the rest of it.
func (c Change) OfMetadata() Change {
	c.Containers = nil
	return c
}

// String is the verdict on one line, for the decision annotation, warnings and events.
func (c Change) String() string {
	switch {
	case !c.InPlace():
		return "recreate: " + c.Reasons.String()
	case c.None():
		return "no change"
	case !c.Restarts():
		return "in place: no restart"
	default:
		return "in place: restarts " + inplace.FirstOf(c.restarting(), ", ")
	}
}

// restarting names the containers that restart.
func (c Change) restarting() []string {
	var names []string
	for container := range c.Restarting() {
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
