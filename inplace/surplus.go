package inplace

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SurplusPasses tells whether pods of the ReplicaSet are too many only until our next step: its controller need not tell anything before. Pods that
// leave have been told of when their ReplicaSet was lowered; of those that have come to the target, the ReplicaSets tell that they have left.
func SurplusPasses(name string, sets []*ReplicaSet, pods []*corev1.Pod, target *ReplicaSet) bool {
	at := slices.IndexFunc(sets, func(rs *ReplicaSet) bool { return rs.Name == name })
	if at < 0 {
		return false
	}
	one, live := sets[at], livePods(pods)
	tooMany := func(rs *ReplicaSet) bool { return live[rs.UID] > int(replicas(rs)) }
	told := func(rs *ReplicaSet) bool { return observed(rs) && int(rs.Status.Replicas) >= live[rs.UID] }
	untold := func(rs *ReplicaSet) bool { return rs != one && tooMany(rs) && !told(rs) }
	passes := told(one) || observed(one) && one == target && !slices.ContainsFunc(sets, untold)
	return Settling(one) && tooMany(one) && passes
}

// livePods counts those of each ReplicaSet.
func livePods(pods []*corev1.Pod) map[types.UID]int {
	count := map[types.UID]int{}
	for _, pod := range pods {
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && live(pod) {
			count[owner.UID]++
		}
	}
	return count
}
