package edit

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/patches"
)

// asksForRestart reports whether an annotation that changes in place is one whose change restarts containers.
func asksForRestart(annotations []patches.EntryChange, rules inplace.Rules) bool {
	return rules.RestartInPlace && slices.ContainsFunc(annotations,
		func(change patches.EntryChange) bool { return rules.Restarts(change.Key) })
}

// addRestarts adds the restarts that annotations ask for, and those of containers whose variables read what changes. It returns why
// containers of running pods cannot be restarted like that. The change has labels and annotations already.
func (c *Change) addRestarts(spec *corev1.PodSpec, rules inplace.Rules) inplace.Reasons {
	if c.AsNew = asksForRestart(c.Annotations, rules); c.AsNew {
		c.Containers = restartAll(c.Containers, spec)
	}
	c.Read = readKeys(spec, keysOf(c.Labels), keysOf(c.Annotations))
	c.Containers = c.Containers.Reading(Living(spec), c.Read)
	var reasons inplace.Reasons
	switch {
	case c.AsNew:
		reasons = initReasons(spec.InitContainers, "")
	case rules.InitContainers && c.Restarts():
		reasons = initReasons(spec.InitContainers,
			fmt.Sprintf(", and label %s is %q", inplace.LabelInitContainers, inplace.InitContainersNative))
	}
	return reasons.And(namelessReasons(spec, c.Containers)...)
}

// restartAll returns changes by which every living container of the template restarts exactly once. A container that gets another
// image restarts for that, unless a pod has the image already.
func restartAll(changes ContainerChanges, spec *corev1.PodSpec) ContainerChanges {
	var all ContainerChanges
	for container := range EachLiving(spec) {
		change := changes.of(container.Name)
		change.Restart = change.NewImage() || !change.Restarts()
		all = append(all, change)
	}
	return all
}

// namelessReasons returns a reason for each container that is to restart with the image it has, and has no other name for it. If the
// image changes, only the pod shows whether it already has the new image.
func namelessReasons(spec *corev1.PodSpec, changes ContainerChanges) inplace.Reasons {
	var reasons inplace.Reasons
	for at, container := range living(spec) {
		if change := changes.of(container.Name); change.Restart && !change.NewImage() && container.Image != "" && !hasNames(container) {
			reasons = reasons.And(restartReason(at.pointer("image"), whyNameless(container)))
		}
	}
	return reasons
}

// initReasons returns a reason for each init container that is not a sidecar: it would not run again when the others restart. The
// text why, if any, says why that is not acceptable.
func initReasons(containers []corev1.Container, why string) inplace.Reasons {
	var reasons inplace.Reasons
	for i := range containers {
		if !IsSidecar(&containers[i]) {
			reasons = reasons.And(restartReason(patches.Pointer("spec", initContainersList, strconv.Itoa(i)),
				fmt.Sprintf("init container %s would not run again%s", containers[i].Name, why)))
		}
	}
	return reasons
}

// AboutInitContainers is the prefix of Change.InitContainersNotRerun.
const AboutInitContainers = "init container"

func notAgain(containers []corev1.Container) string {
	var ended []string
	for i := range containers {
		if !IsSidecar(&containers[i]) {
			ended = append(ended, containers[i].Name)
		}
	}
	switch len(ended) {
	case 0:
		return ""
	case 1:
		return AboutInitContainers + " " + ended[0] + " does not run again"
	}
	return AboutInitContainers + "s " + inplace.FirstOf(ended, ", ") + " do not run again"
}

func whyNameless(container *corev1.Container) string {
	if parsed := parseName(container.Image); parsed != nil && digestOf(parsed) == "" &&
		pullsAlways(container.ImagePullPolicy, container.Image) {
		return fmt.Sprintf("container %s has imagePullPolicy Always, and its image %s has no other name that would make it restart",
			container.Name, container.Image)
	}
	return fmt.Sprintf("image %s of container %s has no other name that would make it restart", container.Image, container.Name)
}

func restartReason(path, message string) inplace.Reason {
	return inplace.Reason{Code: inplace.CodeRestart, Path: path, Message: message}
}

// hint returns the label by which a change of the annotation would restart containers instead of replacing pods. It is empty if no
// label would.
func hint(annotation string, rules inplace.Rules) string {
	if rules.RestartInPlace || !rules.Restarts(annotation) {
		return ""
	}
	return fmt.Sprintf(" (with label %s=%s containers restart in their pods)", inplace.LabelRestart, inplace.RestartInPlace)
}
