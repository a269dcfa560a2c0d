package write

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/steps"
)

// Try makes the patch of a pod in a dry run. The error is a Refusal if admission gives the pod another image than the patch says. A policy
// may change images in every write and not only in a pod's creation, such as one that puts the name of a registry before each image. Then
// the pod would get an image that does not exist, and again when it goes back.
func (w Writer) Try(ctx context.Context, step steps.PatchPod) error {
	patched := &corev1.Pod{}
	patched.SetNamespace(step.Pod.Namespace)
	patched.SetName(step.Pod.Name)
	if err := w.Client.Patch(ctx, patched, Operations(step.Operations), FieldOwner, client.DryRunAll); err != nil {
		return err
	}
	wanted := images(step)
	for i, container := range patched.Spec.Containers {
		if err := rewritten(patched, wanted, fmt.Sprintf("/spec/containers/%d/image", i), container); err != nil {
			return Refusal{err}
		}
	}
	for i, container := range patched.Spec.InitContainers {
		if err := rewritten(patched, wanted, fmt.Sprintf("/spec/initContainers/%d/image", i), container); err != nil {
			return Refusal{err}
		}
	}
	return nil
}

// ChangesImages reports whether the step gives a pod other images.
func ChangesImages(step steps.Step) bool {
	patch, is := step.(steps.PatchPod)
	return is && len(images(patch)) > 0
}

// images returns the images that the patch writes, by their JSON pointers.
func images(step steps.PatchPod) map[string]string {
	written := map[string]string{}
	for _, operation := range step.Operations {
		image, is := operation.Value.(string)
		if is && operation.Operation != "test" && strings.HasPrefix(operation.Path, "/spec/") && strings.HasSuffix(operation.Path, "/image") {
			written[operation.Path] = image
		}
	}
	return written
}

func rewritten(pod *corev1.Pod, wanted map[string]string, path string, container corev1.Container) error {
	if image, is := wanted[path]; is && image != container.Image {
		return fmt.Errorf("admission changes the update of pod %s: container %s gets image %s instead of %s",
			pod.Name, container.Name, container.Image, image)
	}
	return nil
}
