package daemonsets

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/controllerrevisions"
	"github.com/stayput/stayput/inplace/nodes"
	"github.com/stayput/stayput/inplace/readiness"
)

// Housekeeping implements controllerrevisions.Kind: it returns why podsShouldBeOnNode of the DaemonSet controller deletes the pod; nil if
// it does not. A taint NoExecute that the DaemonSet does not tolerate is a reason. A taint NoSchedule is not: pods that run already stay,
// and a node that is unreachable has one.
func (k kind) Housekeeping(pod *corev1.Pod) *inplace.Reason {
	name := pod.Spec.NodeName
	node, known := k.nodes[name]
	switch {
	case !readiness.Live(pod):
		return housekeeping("pod %s has terminated", pod.Name)
	case name == "":
		return housekeeping("pod %s is not scheduled yet", pod.Name)
	case k.Seen.Nodes != nil && !known:
		return housekeeping("node %s is gone", name)
	case known && !k.places.shouldContinue(node):
		return housekeeping("node %s should no longer run the DaemonSet", name)
	case k.onNode(pod) > 1:
		return housekeeping("node %s has several pods of the DaemonSet", name)
	}
	return nil
}

func housekeeping(format string, about string) *inplace.Reason {
	return &inplace.Reason{Code: inplace.CodeHousekeeping, Message: fmt.Sprintf(format, about)}
}

// onNode counts the live pods on the pod's node, including the pod itself.
func (k kind) onNode(pod *corev1.Pod) int {
	there := k.placed[pod.Spec.NodeName]
	if slices.Contains(there, pod.UID) {
		return len(there)
	}
	return len(there) + 1
}

// Reachable implements controllerrevisions.Kind.
func (k kind) Reachable(pod *corev1.Pod) bool {
	node, known := k.nodes[pod.Spec.NodeName]
	if !known {
		return k.Seen.Nodes == nil
	}
	return !nodes.Unreachable(node)
}

// desired returns desiredNumberScheduled.
func (k kind) desired() int {
	desired := 0
	for _, node := range k.Seen.Nodes {
		if k.places.shouldRun(node) {
			desired++
		}
	}
	return desired
}

// Budget implements controllerrevisions.Kind.
func (k kind) Budget(pods []*controllerrevisions.Pod) int {
	return k.DaemonSet.MaxUnavailable(k.desired()) - k.unavailable(pods)
}

// unavailable counts the nodes without a pod that serves, as rollingUpdate in pkg/controller/daemon/update.go does: nodes that should run a
// pod, and nodes that have one, even if it is terminating.
func (k kind) unavailable(pods []*controllerrevisions.Pod) int {
	serving := map[string]int{}
	for _, node := range k.Seen.Nodes {
		if k.places.shouldRun(node) {
			serving[node.Name] = 0
		}
	}
	for _, pod := range k.Seen.Pods {
		if name := pod.Spec.NodeName; name != "" && (pod.DeletionTimestamp == nil || !readiness.Terminal(pod)) {
			serving[name] = 0
		}
	}
	for _, m := range pods {
		if m.Available && k.onNode(m.Pod) == 1 {
			serving[m.Pod.Spec.NodeName]++
		}
	}
	missing := 0
	for _, pods := range serving {
		if pods != 1 {
			missing++
		}
	}
	return missing
}
