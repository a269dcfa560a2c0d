package apps

import (
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Replicas returns how many pods the StatefulSet wants, by default one.
func (s *StatefulSet) Replicas() int {
	return int(ptr.Deref(s.Spec.Replicas, 1))
}

// firstOrdinal is getStartOrdinal of pkg/controller/statefulset/stateful_set_utils.go.
func (s *StatefulSet) firstOrdinal() int {
	return int(ptr.Deref(s.Spec.Ordinals, appsv1.StatefulSetOrdinals{}).Start)
}

// Ordinal returns the ordinal of the StatefulSet's pod; -1 if its name has none: getParentNameAndOrdinal of
// pkg/controller/statefulset/stateful_set_utils.go.
func (s *StatefulSet) Ordinal(pod *corev1.Pod) int {
	digits, is := strings.CutPrefix(pod.Name, s.Name+"-")
	ordinal, err := strconv.ParseUint(digits, 10, 31)
	if !is || err != nil {
		return -1
	}
	return int(ordinal)
}

// Wants reports whether the StatefulSet wants a pod with that ordinal: podInOrdinalRange of
// pkg/controller/statefulset/stateful_set_utils.go.
func (s *StatefulSet) Wants(ordinal int) bool {
	return ordinal >= s.firstOrdinal() && ordinal < s.firstOrdinal()+s.Replicas()
}

// Partition returns how many pods keep their revision: those with the lowest ordinals, see Keeps.
func (s *StatefulSet) Partition() int {
	rolling := ptr.Deref(s.Spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
	return int(ptr.Deref(rolling.Partition, 0))
}

// Keeps reports whether the partition keeps the pod with that ordinal as it is. A partition counts from the first ordinal:
// newVersionedStatefulSetPod of pkg/controller/statefulset/stateful_set_utils.go, and updateMin of stateful_set_control.go.
func (s *StatefulSet) Keeps(ordinal int) bool {
	return s.Wants(ordinal) && ordinal < s.firstOrdinal()+s.Partition()
}

// Ordered reports whether the StatefulSet has the pod management policy OrderedReady, the default: allowsBurst of
// pkg/controller/statefulset/stateful_set_utils.go.
func (s *StatefulSet) Ordered() bool {
	return s.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
}

// MaxUnavailable is getStatefulSetMaxUnavailable of pkg/controller/statefulset/stateful_set_utils.go: rounded down, and at least one. An
// API server without the feature MaxUnavailableStatefulSet stores none.
func (s *StatefulSet) MaxUnavailable() int {
	rolling := ptr.Deref(s.Spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
	return max(1, int(scaled(rolling.MaxUnavailable, int32(s.Replicas()), false)))
}

// Stage distinguishes the parts of one update that begin at different times: the user lowers the partition, or the first ordinal.
func (s *StatefulSet) Stage() string { return strconv.Itoa(s.firstOrdinal() + s.Partition()) }
