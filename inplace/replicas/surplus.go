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

// Surplus is how many pods its controller would delete, were that not held.
func (s *Set) Surplus() int { return max(0, len(s.Pods)-s.Size()) }

// Missing is how many pods its controller has yet to create, or cannot.
func (s *Set) Missing() int { return max(0, s.Size()-len(s.Pods)) }

// Idle is how many pods its controller deletes before any that is Ready (getPodsToDelete in
// pkg/controller/replicaset/replica_set.go). A pod whose kubelet has not seen that its gate is closed is Ready to it like others.
func (s *Set) Idle() int {
	return max(0, s.Size()-len(s.Pods)+s.Unready())
}

// Staying is how many of its pods are to be counted: those leaving are on their way to the target, and those given back to their end, once
// replicas may have been lowered for them.
func (s *Set) Staying(leaving int) int {
	return len(s.Pods) - leaving - min(s.Ending(), s.Surplus())
}

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
