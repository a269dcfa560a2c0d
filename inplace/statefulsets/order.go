package statefulsets

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/controllerrevisions"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
)

// Budget implements controllerrevisions.Kind: updateStatefulSetAfterInvariantEstablished in
// pkg/controller/statefulset/stateful_set_control.go, which counts the ordinals of terminating pods, and of pods that do not exist, as
// unavailable. Under OrderedReady nothing begins while a pod is unavailable that is not just restarting for the update.
func (k kind) Budget(pods []*controllerrevisions.Pod, serves func(*podstate.State) bool) int {
	unavailable, restarting := k.StatefulSet.Replicas(), 0
	for _, m := range pods {
		switch {
		case !k.StatefulSet.Wants(k.StatefulSet.Ordinal(m.Pod)):
		case serves(&m.State) && (!m.PartiallyPatched() || m.Restarts()):
			unavailable--
		case m.PartiallyPatched(): // one that has restarted, too: the controller would delete it if every manager ended now
			restarting++
		}
	}
	if k.StatefulSet.Ordered() && unavailable > restarting {
		return 0
	}
	return k.StatefulSet.MaxUnavailable() - unavailable - k.unseen(pods)
}

// unseen counts the pods of the update revision that the StatefulSet controller may still take for pods of another one, by its status. If
// every manager ended now, it would delete them, while another pod restarts for the update. The user may set another strategy at any
// moment, so it is the same with OnDelete, where the controller writes that status, too.
func (k kind) unseen(pods []*controllerrevisions.Pod) int {
	status, updated, counted := k.StatefulSet.Status, 0, 0
	for _, m := range pods {
		if !m.Updated || !k.StatefulSet.Wants(k.StatefulSet.Ordinal(m.Pod)) {
			continue
		}
		updated++
		if status.UpdateRevision == m.UpdateHash {
			counted = int(status.UpdatedReplicas)
		}
	}
	return max(0, updated-counted)
}

// Next implements controllerrevisions.Kind. Pods that have begun go on, and pods that do not serve cost nothing. Of the others, only as
// many have their turn as may be taken out of service, the highest ordinals: if one of them has to wait, the lower ones wait as well. Under
// OrderedReady a pod that is not available yet is waited for, as natively. If the user asks for another order, that is the order of the
// pods.
func (k kind) Next(pending []*controllerrevisions.Pod, budget podstate.Budget) []*controllerrevisions.Pod {
	var next, serving []*controllerrevisions.Pod
	for i, m := range pending {
		switch {
		case m.PartiallyPatched(), readiness.Out(m.Pod), m.NoRestart(): // its move has begun, or costs nothing
			next = append(next, m)
		case m.Serving && m.WhyReplaced() != nil && k.anyHigher(pending[i+1:], m):
		case m.Available, m.Serving && !k.StatefulSet.Ordered():
			serving = append(serving, m)
		case k.hopeless(m):
			next = append(next, m)
		}
	}
	for _, m := range serving {
		if !budget.Allows(&m.State) {
			break
		}
		budget.Take(&m.State)
		next = append(next, m)
	}
	return next
}

// anyHigher reports whether one of the pods has a higher ordinal than the pod m. As long as Stayput holds the deletion of a higher ordinal,
// the controller deletes no lower one (updateStatefulSetAfterInvariantEstablished). So a pod that must be replaced does not take the turn
// of higher ordinals, even if the user wants it to go first: the update would never end.
func (k kind) anyHigher(pods []*controllerrevisions.Pod, m *controllerrevisions.Pod) bool {
	return slices.ContainsFunc(pods, func(other *controllerrevisions.Pod) bool {
		return k.StatefulSet.Ordinal(other.Pod) > k.StatefulSet.Ordinal(m.Pod)
	})
}

// hopeless reports whether a pod that does not serve gets the update revision at once. Under OrderedReady a pod that is not Ready is waited
// for, as without Stayput: it may replay a log, or wait for another member. But waiting is in vain if a container does not run, and may be
// in vain if the pod has another revision than status.currentRevision, the last one that all pods became Ready with. A pod that is Ready
// serves, though it may not be available yet. With strategy OnDelete the controller never sets that field anew (completeRollingUpdate in
// stateful_set_utils.go), so there no pod of a later revision is waited for.
func (k kind) hopeless(m *controllerrevisions.Pod) bool {
	switch {
	case m.Ready():
		return false
	case !k.StatefulSet.Ordered():
		return true
	}
	proved := m.Pod.Labels[inplace.LabelRevisionHash] == k.StatefulSet.Status.CurrentRevision
	return !proved ||
		slices.ContainsFunc(slices.Concat(m.Pod.Status.InitContainerStatuses, m.Pod.Status.ContainerStatuses), cannotRun)
}

// cannotRun reports whether the kubelet waits before it tries again to run the container: it cannot pull an image, or create or start the
// container, or the container has failed again and again (pkg/kubelet/container/sync_result.go, pkg/kubelet/kuberuntime). The first reasons
// of a new container are no failures.
func cannotRun(status corev1.ContainerStatus) bool {
	waiting := status.State.Waiting
	return waiting != nil && !slices.Contains([]string{"", "ContainerCreating", "PodInitializing"}, waiting.Reason)
}

// ReplacementWaits implements controllerrevisions.Kind: as long as Stayput updates any pod, the replacement has its turn as if the pod were
// updated in place.
func (kind) ReplacementWaits(r controllerrevisions.Replacement) string {
	switch {
	case r.Kept:
		return "the partition keeps the pod"
	case r.Held() && r.AtPartition():
		return "the pod waits for the maintenance window"
	case r.Held() && !r.HasTurn():
		return "other pods of the StatefulSet are updated first"
	}
	return ""
}
