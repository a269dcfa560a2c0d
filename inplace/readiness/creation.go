package readiness

import (
	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/patches"
)

// AddGate returns the operations that give a pod the readiness gate while it is created; none if it has the gate already. Gates cannot be
// added later.
func AddGate(pod *corev1.Pod) []jsonpatch.Operation {
	gate := corev1.PodReadinessGate{ConditionType: inplace.ConditionServing}
	switch {
	case Gated(pod):
		return nil
	case len(pod.Spec.ReadinessGates) == 0:
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/spec/readinessGates", []corev1.PodReadinessGate{gate})}
	default:
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/spec/readinessGates/-", gate)}
	}
}

// WithoutMove returns the operations that remove Stayput's annotations from a pod that is being created: its template may contain those
// of another pod, but this one has not been moved, is not known to be a surge pod, and has not been asked to restart containers.
func WithoutMove(pod *corev1.Pod) []jsonpatch.Operation {
	return podMarks(pod, "")
}

// Admit returns the same operations, and those that note that a webhook was asked about the creation of this pod, which gets no gate.
func Admit(pod *corev1.Pod) []jsonpatch.Operation {
	return podMarks(pod, "true")
}

func podMarks(pod *corev1.Pod, admitted string) []jsonpatch.Operation {
	return patches.SetEntries("annotations", pod.Annotations, [2]string{inplace.AnnotationMove, ""}, [2]string{inplace.AnnotationSurgePod, ""},
		[2]string{inplace.AnnotationRestarts, ""}, [2]string{inplace.AnnotationNudged, ""}, [2]string{inplace.AnnotationAdmitted, admitted},
		[2]string{inplace.AnnotationRestartContainers, ""}, [2]string{inplace.AnnotationRestartDeadline, ""},
		[2]string{inplace.AnnotationRestarted, ""})
}
