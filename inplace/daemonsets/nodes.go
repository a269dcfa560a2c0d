package daemonsets

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace/controllerrevisions"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
)

// onNodes is what the DaemonSet controller does on the nodes that were observed.
type onNodes struct {
	seen   *engine.Snapshot
	places places
	nodes  map[string]*corev1.Node
	placed map[string][]types.UID // the live pods, by node
}

// On returns the kind with what follows from the snapshot: see controllerrevisions.Kind.
func (k kind) On(seen *engine.Snapshot) controllerrevisions.Kind {
	k.onNodes = onNodes{seen: seen, places: placesOf(k.DaemonSet), nodes: readiness.NodesByName(seen.Nodes), placed: map[string][]types.UID{}}
	for _, pod := range seen.Pods {
		if readiness.Live(pod) {
			k.placed[pod.Spec.NodeName] = append(k.placed[pod.Spec.NodeName], pod.UID)
		}
	}
	return k
}

// Housekeeping implements controllerrevisions.Kind: it returns why podsShouldBeOnNode of the DaemonSet controller deletes the pod; empty
// if it does not. A taint NoExecute that the DaemonSet does not tolerate is a reason. A taint NoSchedule is not: pods that run already
// stay, and a node that is unreachable has one.
func (k kind) Housekeeping(pod *corev1.Pod) string {
	name := pod.Spec.NodeName
	node, known := k.nodes[name]
	switch {
	case !readiness.Live(pod):
		return "pod " + pod.Name + " has terminated"
	case name == "":
		return "pod " + pod.Name + " is not scheduled yet"
	case k.seen.Nodes != nil && !known:
		return "node " + name + " is gone"
	case known && !k.places.shouldContinue(node):
		return "node " + name + " should no longer run the DaemonSet"
	case k.onNode(pod) > 1:
		return "node " + name + " has several pods of the DaemonSet"
	}
	return ""
}

// onNode counts the live pods on the pod's node, including the pod itself.
func (k kind) onNode(pod *corev1.Pod) int {
	there := k.placed[pod.Spec.NodeName]
	if slices.Contains(there, pod.UID) {
		return len(there)
	}
	return len(there) + 1
}

// Replicas implements controllerrevisions.Kind: desiredNumberScheduled.
func (k kind) Replicas() int {
	desired := 0
	for _, node := range k.seen.Nodes {
		if k.places.shouldRun(node) {
			desired++
		}
	}
	return desired
}

// Budget implements controllerrevisions.Kind.
func (k kind) Budget(pods []*controllerrevisions.Pod, serves func(*podstate.State) bool) int {
	return k.DaemonSet.MaxUnavailable(k.Replicas()) - k.unavailable(pods, serves)
}

// unavailable counts the nodes without a pod that serves, as rollingUpdate in pkg/controller/daemon/update.go does: nodes that should run a
// pod, and nodes that have one, even if it is terminating. Those that are skipped do not count.
func (k kind) unavailable(pods []*controllerrevisions.Pod, serves func(*podstate.State) bool) int {
	serving := map[string]int{}
	for _, node := range k.seen.Nodes {
		if k.places.shouldRun(node) {
			serving[node.Name] = 0
		}
	}
	for _, pod := range k.seen.Pods {
		if name := pod.Spec.NodeName; name != "" && (pod.DeletionTimestamp == nil || !readiness.Terminal(pod)) {
			serving[name] = 0
		}
	}
	for _, m := range pods {
		if serves(&m.State) && k.onNode(m.Pod) == 1 {
			serving[m.Pod.Spec.NodeName]++
		}
	}
	k.skip(serving, pods)
	missing := 0
	for _, pods := range serving {
		if pods != 1 {
			missing++
		}
	}
	return missing
}

// skip takes out the nodes for which the user does not wait: see inplace.AnnotationUnreachableNodes. A node whose pod has begun the update
// stays: the update may be what keeps its kubelet from reporting, and would go on to all other nodes (kubernetes/kubernetes#117658).
func (k kind) skip(nodes map[string]int, pods []*controllerrevisions.Pod) {
	if !k.seen.Settings.SkipsUnreachable {
		return
	}
	begun := map[string]bool{}
	for _, m := range pods {
		begun[m.Pod.Spec.NodeName] = begun[m.Pod.Spec.NodeName] || m.Begun()
	}
	maps.DeleteFunc(nodes, func(name string, _ int) bool { return readiness.Unreachable(k.nodes[name]) && !begun[name] })
}
