package edit

import (
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/patches"
)

// Change is what changes in a pod when it becomes a pod of another template. It is about all pods of one template, or about one
// live pod.
type Change struct {
	// Containers are the containers that change. Between two templates, they are in the order of Living. Sidecars are among them,
	// other init containers are not.
	Containers ContainerChanges
	// Labels are the labels that change. Annotations are the annotations that change and are on the allow-list. Both are sorted by
	// key.
	Labels, Annotations []patches.EntryChange
	// Read are the labels and annotations among these that variables of containers read. These containers restart, and must not restart
	// before the pod has the new values: a kubelet sets the variables when it starts a container.
	Read ReadKeys
	// Tolerations are the tolerations that are added.
	Tolerations []corev1.Toleration
	// InitContainersNotRerun says which init containers do not run again although containers restart: they have ended. It is empty if there
	// are none.
	InitContainersNotRerun string
	// VariablesRead says why containers restart although only labels or annotations change. It is empty if no variable reads those.
	VariablesRead string
	// AsNew says that an annotation asks for the restarts. Then containers restart as new pods would start, and so not in pods whose init
	// containers would have to run again.
	AsNew bool
	// LostTolerations are the reasons why pods with default tolerations from admission cannot take the change: new pods would not get these
	// tolerations. Admission adds no default tolerations to pods of DaemonSets.
	LostTolerations inplace.Reasons
	// Reasons are the reasons why running pods cannot take the change. If there are none, they can.
	Reasons inplace.Reasons
}

// ContainerChange is what changes in one container.
type ContainerChange struct {
	Container string
	// Image is the change of the image. It is zero if the container keeps its image.
	Image ImageChange
	// Resources is the change of CPU and memory. It is zero if the container keeps its own.
	Resources ResourceChange
	// Restart says that the container restarts with the image it has. In a live pod, the container then gets another name of that
	// image. Between templates, Restart can come with another image: a live pod may have that image already.
	Restart bool
}

// ContainerChanges are the changes of several containers, at most one for each container.
type ContainerChanges []ContainerChange

// ImageChange is an image and its replacement.
type ImageChange struct{ From, To string }

// ResourceChange is the CPU and memory of a container and their replacement.
type ResourceChange struct {
	From, To Amounts
	// Written is To in the spelling that is written to the API server.
	Written Amounts
	// Restarts says that the container's resizePolicy asks for a restart when one of the changed resources changes.
	Restarts bool
}

// Left reports whether anything changes.
func (c ContainerChange) Left() bool { return c != ContainerChange{Container: c.Container} }

// Restarts reports whether the container restarts for the change.
func (c ContainerChange) Restarts() bool { return c.NewImage() || c.Restart || c.Resources.Restarts }

// NewImage reports whether the container gets another image, or another name of the image it has.
func (c ContainerChange) NewImage() bool { return c.Image != ImageChange{} }

// Resizes reports whether the container gets other CPU or memory.
func (c ContainerChange) Resizes() bool { return c.Resources != ResourceChange{} }

// InPlace reports whether running pods can take the change.
func (c Change) InPlace() bool { return len(c.Reasons) == 0 }

// Left reports whether there is anything to do in place.
func (c Change) Left() bool {
	return len(c.Containers) > 0 || len(c.Labels) > 0 || len(c.Annotations) > 0 || len(c.Tolerations) > 0
}

// None reports whether nothing changes at all.
func (c Change) None() bool { return c.InPlace() && !c.Left() }

// Restarts reports whether any container restarts.
func (c Change) Restarts() bool { return c.Containers.Restarts() }

// RestartsContainer reports whether the container of that name restarts.
func (c Change) RestartsContainer(name string) bool {
	return c.Containers.of(name).Restarts()
}

// OfContainers returns the part of the change that concerns containers: what changes in them, and the labels and annotations that their
// variables read.
func (c Change) OfContainers() Change {
	return Change{Containers: c.Containers, Read: c.Read, Labels: entriesOf(c.Labels, c.Read.Labels),
		Annotations: entriesOf(c.Annotations, c.Read.Annotations)}
}

// entriesOf returns the changes of those keys.
func entriesOf(changes []patches.EntryChange, keys []string) []patches.EntryChange {
	return slices.DeleteFunc(slices.Clone(changes), func(change patches.EntryChange) bool { return !slices.Contains(keys, change.Key) })
}

// Resizes reports whether the container of that name gets other CPU or memory.
func (c Change) Resizes(container string) bool {
	return c.Containers.of(container).Resizes()
}

// Restarts reports whether any container restarts.
func (c ContainerChanges) Restarts() bool { return slices.ContainsFunc(c, ContainerChange.Restarts) }

// Resizes reports whether any container gets other CPU or memory.
func (c ContainerChanges) Resizes() bool { return slices.ContainsFunc(c, ContainerChange.Resizes) }

// RestartsToResize reports whether any container restarts for its CPU or memory.
func (c ContainerChanges) RestartsToResize() bool {
	return slices.ContainsFunc(c, func(c ContainerChange) bool { return c.Resources.Restarts })
}

// Resizing returns the part of the changes that concerns CPU and memory.
func (c ContainerChanges) Resizing() ContainerChanges {
	var resizing ContainerChanges
	for change := range c.those(ContainerChange.Resizes) {
		resizing = append(resizing, ContainerChange{Container: change.Container, Resources: change.Resources})
	}
	return resizing
}

// Restarting returns the changes of containers that restart when the change is made in place.
func (c ContainerChanges) Restarting() iter.Seq[ContainerChange] {
	return c.those(ContainerChange.Restarts)
}

// Awaited reports whether the user waits for a container that is to restart: for one that is not auxiliary. A user who asks for a restart
// as such always waits for it, because nothing else asks for it.
func (c ContainerChanges) Awaited(auxiliary inplace.Auxiliary) bool {
	for change := range c.Restarting() {
		if change.Restart || !auxiliary.Has(change.Container) {
			return true
		}
	}
	return false
}

// NewImages returns the changes of containers that get another image, or another name of the image they have.
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

// These prefixes begin the text of a decision.
const (
	InPlacePrefix  = "in place: "
	RecreatePrefix = "recreate: "
)

// restartsPrefix is before the names of the containers that restart, which end the text.
const restartsPrefix = "restarts "

// Restarted returns the containers that restart, as far as the text of a decision names them.
func Restarted(decision string) []string {
	if _, names, restarts := strings.Cut(decision, restartsPrefix); restarts && strings.HasPrefix(decision, InPlacePrefix) {
		names, _, _ = strings.Cut(names, ", and ")
		return strings.Split(names, ", ")
	}
	return nil
}

// String returns the decision on one line, for the decision annotation, warnings and events.
func (c Change) String() string {
	switch {
	case !c.InPlace():
		return RecreatePrefix + c.Reasons.String()
	case c.None():
		return "no change"
	}
	does := "no restart"
	if c.Restarts() {
		does = restartsPrefix + inplace.FirstOf(c.Restarting(), ", ")
	}
	if c.Containers.Resizes() {
		does = "resizes " + inplace.FirstOf(c.Containers.named(ContainerChange.Resizes), ", ") + ", " + does
	}
	return InPlacePrefix + does
}

// Restarting returns the names of the containers that restart.
func (c Change) Restarting() []string { return c.Containers.named(ContainerChange.Restarts) }

func (c ContainerChanges) named(which func(ContainerChange) bool) []string {
	var names []string
	for container := range c.those(which) {
		names = append(names, container.Container)
	}
	return names
}

// keysOf returns the keys of the labels or annotations that change.
func keysOf(changes []patches.EntryChange) []string {
	var keys []string
	for _, change := range changes {
		keys = append(keys, change.Key)
	}
	return keys
}
