package edit

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/patches"
)

// addRestarts adds the restarts that annotations ask for, and those of containers whose variables read what changes. It returns why
// containers of running pods cannot be restarted like that. The change has labels and annotations already.
func (c *Change) addRestarts(spec *corev1.PodSpec, rules inplace.Rules) inplace.Reasons {
	c.AsNew = slices.ContainsFunc(c.Annotations, func(change patches.EntryChange) bool { return rules.Restarts(change.Key) })
	c.Containers = c.Containers.edited(Living(spec), func(change *ContainerChange, _ corev1.Container) {
		asked := c.AsNew || slices.ContainsFunc(c.Annotations, func(entry patches.EntryChange) bool {
			return inplace.ContainerToRestart(entry.Key) == change.Container
		})
		if asked { // exactly once: one that gets another image restarts for that, unless a pod has the image already
			change.Restart = change.NewImage() || !change.Restarts()
		}
	})
	c.Read = ReadKeys{keysOf(c.Labels), keysOf(c.Annotations)}.Of(Living(spec))
	c.Containers = c.Containers.Reading(Living(spec), c.Read)
	var reasons inplace.Reasons
	switch {
	case c.AsNew:
		reasons = initReasons(spec.InitContainers, "")
	case c.Restarts():
		reasons = nativeForInit(spec, rules)
	}
	return reasons.And(namelessReasons(spec, c.Containers)...)
}

// nativeForInit returns a reason for each init container that would not run again, if the workload asks for new pods then.
func nativeForInit(spec *corev1.PodSpec, rules inplace.Rules) inplace.Reasons {
	if !rules.InitContainers {
		return nil
	}
	return initReasons(spec.InitContainers,
		fmt.Sprintf(", and annotation %s is %q", inplace.AnnotationInitContainers, inplace.Native))
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

// ForbidsRestart returns why that container of a pod must not restart, whatever image it runs. There is no reason if it may.
func ForbidsRestart(spec *corev1.PodSpec, container string, rules inplace.Rules) inplace.Reasons {
	if Named(spec, container) == nil {
		return inplace.Reasons{restartReason("", "the pod has no container or sidecar "+container)}
	}
	return WhyNotRestarted(spec, container).And(nativeForInit(spec, rules)...)
}

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
		return "init container " + ended[0] + " does not run again"
	}
	return "init containers " + inplace.FirstOf(ended, ", ") + " do not run again"
}

func whyNameless(container *corev1.Container) string {
	if parsed := parseName(container.Image); parsed != nil && digestOf(parsed) == "" { // or else it could be pinned to a digest
		return fmt.Sprintf("container %s has imagePullPolicy Always, and its image %s has no other name that would make it restart",
			container.Name, container.Image)
	}
	return fmt.Sprintf("image %s of container %s has no other name that would make it restart", container.Image, container.Name)
}

func restartReason(path, message string) inplace.Reason {
	return inplace.Reason{Code: inplace.CodeRestart, Path: path, Message: message}
}

// hint returns how a change of the annotation would restart containers instead of replacing pods. It is empty if it never would.
func hint(annotation string, rules inplace.Rules) string {
	switch container := inplace.ContainerToRestart(annotation); {
	case container != "":
		return fmt.Sprintf(" (the template has no container or sidecar %s to restart)", container)
	case annotation != inplace.AnnotationRestartedAt || rules.Allows(annotation):
		return ""
	}
	return fmt.Sprintf(" (with annotation %s=%s containers restart in their pods)", inplace.AnnotationRestartAnnotations, annotation)
}
