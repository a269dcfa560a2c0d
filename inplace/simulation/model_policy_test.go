package simulation

import (
	"fmt"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// policy is what manifests/base/own-power.yaml lets Stayput write in a namespace without the label. It must allow every step that is
// planned there, or an update could not fall back. It may refuse a step that was planned before the label was removed.
func (w *world) policy(step steps.Step) error {
	if w.mode.Manages() || !w.refuses(step) {
		return nil
	}
	if !w.stayput.queuedIn.Manages() {
		w.violated("a policy refuses a fallback: %s", step.Describe())
	}
	return errRefused
}

func (w *world) refuses(step steps.Step) bool {
	switch s := step.(type) {
	case steps.SetReady:
		return s.Out
	case steps.PatchReplicaSet:
		return slices.ContainsFunc(s.Operations, func(o jsonpatch.Operation) bool { return o.Path == "/spec/replicas" })
	case steps.PatchPod:
		if s.Resizes {
			return s.Pod.Labels[inplace.LabelTemplateHash] == "" || !hasAgain(s)
		}
		return slices.ContainsFunc(s.Operations[1:], func(o jsonpatch.Operation) bool { return !allows(s.Pod, o) })
	case steps.CreateReplicaSet, steps.CreatePrePullPod, steps.PatchStatus:
		return true
	}
	return false
}

// hasAgain reports whether a resize gives containers the resources that the mark says they had.
func hasAgain(resize steps.PatchPod) bool {
	pod := resize.Pod.DeepCopy()
	if err := fixture.Apply(pod, resize.Operations); err != nil {
		return false
	}
	for i, container := range pod.Spec.Containers {
		is, was := edit.AmountsOf(container.Resources), edit.AmountsOf(resize.Pod.Spec.Containers[i].Resources)
		if noted, marked := readiness.MoveOf(pod).Resize[container.Name]; is != was && (!marked || noted.Back != is) {
			return false
		}
	}
	return true
}

// allows reports whether the policy allows the operation: it removes a mark of Stayput from a pod, or gives a partially patched pod an
// image, a label or an annotation again that the mark says the pod had.
func allows(pod *corev1.Pod, o jsonpatch.Operation) bool {
	hash, move := pod.Labels[inplace.LabelTemplateHash], readiness.MoveOf(pod)
	partial := hash != "" && move.Hash != hash
	for list, containers := range map[string][]corev1.Container{"containers": pod.Spec.Containers, "initContainers": pod.Spec.InitContainers} {
		for i, container := range containers {
			if o.Path == fmt.Sprintf("/spec/%s/%d/image", list, i) {
				return partial && move.Back[container.Name] == o.Value
			}
		}
	}
	list, key, _ := strings.Cut(strings.TrimPrefix(o.Path, "/metadata/"), "/")
	key = strings.ReplaceAll(key, "~1", "/")
	early := map[string][]string{"labels": move.Read.Labels, "annotations": move.Read.Annotations}[list]
	if partial && slices.Contains(early, key) {
		return true
	}
	return list == "annotations" && (key == corev1.PodDeletionCost || o.Operation == "remove" &&
		slices.Contains([]string{inplace.AnnotationMove, inplace.AnnotationSurgePod, inplace.AnnotationRestarts}, key))
}
