package daemonsets

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace/controllerrevisions"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
)

// native is what the DaemonSet controller does on the nodes that were observed: it implements controllerrevisions.Native.
type native struct {
	kind
	seen   *engine.Snapshot
	places places
	nodes  map[string]*corev1.Node
	placed map[string][]types.UID // the live pods, by node
}

// Native implements controllerrevisions.Kind.
func (k kind) Native(seen *engine.Snapshot) controllerrevisions.Native {
	n := native{kind: k, seen: seen, places: placesOf(k.DaemonSet), nodes: readiness.NodesByName(seen.Nodes), placed: map[string][]types.UID{}}
	for _, pod := range seen.Pods {
		if readiness.Live(pod) {
			n.placed[pod.Spec.NodeName] = append(n.placed[pod.Spec.NodeName], pod.UID)
		}
	}
	return n
}

// Housekeeping implements controllerrevisions.Native: it returns why podsShouldBeOnNode of the DaemonSet controller deletes the pod; empty
// if it does not. A taint NoExecute that the DaemonSet does not tolerate is a reason. A taint NoSchedule is not: pods that run already
// stay, and a node that is unreachable has one.
func (n native) Housekeeping(pod *corev1.Pod) string {
	name := pod.Spec.NodeName
	node, known := n.nodes[name]
	switch {
	case !readiness.Live(pod):
		return "pod " + pod.Name + " has terminated"
	case name == "":
		return "pod " + pod.Name + " is not scheduled yet"
	case n.seen.Nodes != nil && !known:
		return "node " + name + " is gone"
	case known && !n.places.shouldContinue(node):
		return "node " + name + " should no longer run the DaemonSet"
	case n.onNode(pod) > 1:
		return "node " + name + " has several pods of the DaemonSet"
	}
	return ""
}

// onNode counts the live pods on the pod's node, including the pod itself.
func (n native) onNode(pod *corev1.Pod) int {
	there := n.placed[pod.Spec.NodeName]
	if slices.Contains(there, pod.UID) {
		return len(there)
	}
	return len(there) + 1
}

// Replicas implements controllerrevisions.Native: desiredNumberScheduled.
func (n native) Replicas() int {
	desired := 0
	for _, node := range n.seen.Nodes {
		if n.places.shouldRun(node) {
			desired++
		}
	}
	return desired
}

// Budget implements controllerrevisions.Native.
func (n native) Budget(pods []*controllerrevisions.Pod, serves func(*podstate.State) bool) int {
	return n.DaemonSet.MaxUnavailable(n.Replicas()) - n.unavailable(pods, serves)
}

// unavailable counts the nodes without a pod that serves, as rollingUpdate in pkg/controller/daemon/update.go does: nodes that should run a
// pod, and nodes that have one, even if it is terminating.
func (n native) unavailable(pods []*controllerrevisions.Pod, serves func(*podstate.State) bool) int {
	serving := map[string]int{}
	for _, node := range n.seen.Nodes {
		if n.places.shouldRun(node) {
			serving[node.Name] = 0
		}
	}
	for _, pod := range n.seen.Pods {
		if name := pod.Spec.NodeName; name != "" && (pod.DeletionTimestamp == nil || !readiness.Terminal(pod)) {
			serving[name] = 0
		}
	}
	for _, m := range pods {
		if serves(&m.State) && n.onNode(m.Pod) == 1 {
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
