package simulation

import (
	"fmt"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// policy is what manifests/base/own-power.yaml lets us write in a namespace without the label. Nothing that is planned there may be
// refused, or an update could not be given back; what was planned before the label went may.
func (w *world) policy(step steps.Step) error {
	if w.mode.Manages() || !w.refuses(step) {
		return nil
	}
	if !w.stayput.queuedIn.Manages() {
		w.violated("a policy refuses to give an update back: %s", step.Describe())
	}
	return errRefused
}

func (w *world) refuses(step steps.Step) bool {
	switch s := step.(type) {
	case steps.SetGate:
		return !s.Open
	case steps.PatchReplicaSet:
		return slices.ContainsFunc(s.Operations, func(o jsonpatch.Operation) bool { return o.Path == "/spec/replicas" })
	case steps.PatchPod:
		if s.Resizes {
			return len(readiness.MoveOf(s.Pod).Resize) == 0 || readiness.MoveOf(s.Pod).Hash == s.Pod.Labels[inplace.LabelTemplateHash]
		}
		return slices.ContainsFunc(s.Operations[1:], func(o jsonpatch.Operation) bool { return !givesBack(s.Pod, o.Path) })
	case steps.CreateReplicaSet, steps.CreatePuller, steps.PatchStatus:
		return true
	}
	return false
}

// givesBack tells whether the policy lets what is at the path change: our marks on a pod that has one, and an image that a pod got half-way.
func givesBack(pod *corev1.Pod, path string) bool {
	for list, containers := range map[string][]corev1.Container{"containers": pod.Spec.Containers, "initContainers": pod.Spec.InitContainers} {
		for i, container := range containers {
			if path == fmt.Sprintf("/spec/%s/%d/image", list, i) {
				hash, move := pod.Labels[inplace.LabelTemplateHash], readiness.MoveOf(pod)
				return hash != "" && move.Hash != hash && move.Containers[container.Name].Image == container.Image
			}
		}
	}
	mark, is := strings.CutPrefix(path, "/metadata/annotations/")
	marked := pod.Annotations[inplace.AnnotationMove] != "" || pod.Annotations[inplace.AnnotationBorrowed] != ""
	mark = strings.ReplaceAll(mark, "~1", "/")
	return is && marked && slices.Contains([]string{inplace.AnnotationMove, inplace.AnnotationBorrowed, inplace.AnnotationRestarts, corev1.PodDeletionCost}, mark)
}

// stored are the conditions that the API server stores of a write of pods/status: by the rule, where it has one and the namespace its label.
func (w *world) stored(old, sent *corev1.Pod, writer readiness.Writer) []corev1.PodCondition {
	if !w.says || !w.mode.Manages() {
		return sent.Status.Conditions
	}
	return readiness.StoredConditions(old, sent, writer)
}
