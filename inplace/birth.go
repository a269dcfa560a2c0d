package inplace

import (
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
)

// AddGate returns the operations that give a pod the readiness gate while it is created; none if it has it already.
// Gates cannot be added later.
func AddGate(pod *corev1.Pod) []jsonpatch.Operation {
	gate := corev1.PodReadinessGate{ConditionType: ConditionServing}
	switch gates := pod.Spec.ReadinessGates; {
	case slices.Contains(gates, gate):
		return nil
	case len(gates) == 0:
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/spec/readinessGates", []corev1.PodReadinessGate{gate})}
	default:
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/spec/readinessGates/-", gate)}
	}
}

// BornEmpty returns the operations that make a ReplicaSet be created without replicas, so that live pods can move to it;
// none if it has none already.
func BornEmpty(rs *ReplicaSet) []jsonpatch.Operation {
	if rs.Spec.Replicas != nil && *rs.Spec.Replicas == 0 {
		return nil
	}
	return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/spec/replicas", 0)}
}
