package creation

import (
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/patches"
)

// AddGate returns the operations that give a pod the readiness gate while it is created; none if it has the gate already. Gates cannot be
// added later.
func AddGate(pod *corev1.Pod) []jsonpatch.Operation {
	gate := corev1.PodReadinessGate{ConditionType: inplace.ConditionServing}
	switch gates := pod.Spec.ReadinessGates; {
	case slices.Contains(gates, gate):
		return nil
	case len(gates) == 0:
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/spec/readinessGates", []corev1.PodReadinessGate{gate})}
	default:
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/spec/readinessGates/-", gate)}
	}
}

// WithoutMarks returns the operations that remove Stayput's marks from a ReplicaSet that is being created: labels of a template may contain
// them.
func WithoutMarks(rs *apps.ReplicaSet) []jsonpatch.Operation {
	var none [][2]string
	for _, mark := range inplace.Marks {
		none = append(none, [2]string{mark, ""})
	}
	return patches.SetEntries("labels", rs.Labels, none...)
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

// RecordDecision returns the operations that write on a workload what its last template edit does, or remove that if the decision is empty,
// and that make the other changes of its annotations.
func RecordDecision(workload metav1.Object, decision string, others ...patches.EntryChange) []jsonpatch.Operation {
	changes := append([]patches.EntryChange{{Key: inplace.AnnotationDecision, Value: decision, Removing: decision == ""}}, others...)
	if len(workload.GetAnnotations()) > 0 {
		return patches.EntryOperations("annotations", workload.GetAnnotations(), changes)
	}
	if all := patches.Changed(nil, changes); len(all) > 0 {
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", patches.Pointer("metadata", "annotations"), all)}
	}
	return nil
}

// WithoutReplicas returns the operations that make the API server create a ReplicaSet without replicas, so that live pods can move to it;
// none if it has no replicas already.
func WithoutReplicas(rs *apps.ReplicaSet) []jsonpatch.Operation {
	if rs.Spec.Replicas != nil && *rs.Spec.Replicas == 0 {
		return nil
	}
	return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/spec/replicas", 0)}
}
