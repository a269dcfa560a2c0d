package replicas

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
)

// SurplusPasses tells whether pods of the ReplicaSet are too many only until our next step: its controller need not tell anything before. Pods that
// leave have been told of when their ReplicaSet was lowered; of those that have come to the target, the ReplicaSets tell that they have left.
func SurplusPasses(name string, sets []*apps.ReplicaSet, pods []*corev1.Pod, target *apps.ReplicaSet) bool {
	at := slices.IndexFunc(sets, func(rs *apps.ReplicaSet) bool { return rs.Name == name })
	if at < 0 {
		return false
	}
	one, live := sets[at], livePods(pods)
	tooMany := func(rs *apps.ReplicaSet) bool { return live[rs.UID] > int(apps.Replicas(rs)) }
	told := func(rs *apps.ReplicaSet) bool { return apps.Observed(rs) && int(rs.Status.Replicas) >= live[rs.UID] }
	untold := func(rs *apps.ReplicaSet) bool { return rs != one && tooMany(rs) && !told(rs) }
	passes := told(one) || apps.Observed(one) && one == target && !slices.ContainsFunc(sets, untold)
	return revisions.Settling(one) && tooMany(one) && passes
}

// livePods counts those of each ReplicaSet.
func livePods(pods []*corev1.Pod) map[types.UID]int {
	count := map[types.UID]int{}
	for _, pod := range pods {
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && readiness.Live(pod) {
			count[owner.UID]++
		}
	}
	return count
}
