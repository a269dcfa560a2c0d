package statefulsets

import (
	"cmp"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/nodes"
	"github.com/stayput/stayput/inplace/readiness"
)

// kind says what is special about StatefulSets: it implements controllerrevisions.Kind.
type kind struct {
	Rollout
	nodes map[string]*corev1.Node
}

func kindOf(r Rollout) kind { return kind{Rollout: r, nodes: nodes.ByName(r.Seen.Nodes)} }

// Workload implements controllerrevisions.Kind.
func (k kind) Workload() engine.Workload {
	return engine.Workload{Object: k.StatefulSet, Kind: "StatefulSet", Template: k.StatefulSet.Spec.Template,
		Replicas: k.StatefulSet.Replicas(), MinReadySeconds: k.StatefulSet.Spec.MinReadySeconds}
}

// PodLabel implements controllerrevisions.Kind: setPodRevision of pkg/controller/statefulset/stateful_set_utils.go.
func (kind) PodLabel(revision *apps.ControllerRevision) string { return revision.Name }

// Strategy implements controllerrevisions.Kind. The API server sets RollingUpdate where a manifest names none.
func (k kind) Strategy() *inplace.Reason {
	reason := &inplace.Reason{Code: inplace.CodeStrategy, Path: "/spec/updateStrategy/type"}
	switch strategy := k.StatefulSet.Spec.UpdateStrategy.Type; strategy {
	case "", appsv1.RollingUpdateStatefulSetStrategyType:
		return nil
	case appsv1.OnDeleteStatefulSetStrategyType:
		reason.Message = "with strategy OnDelete the user decides when a pod is updated"
	default:
		reason.Message = fmt.Sprintf("strategy %s is not known", strategy)
	}
	return reason
}

// Housekeeping implements controllerrevisions.Kind: it returns why the StatefulSet controller deletes the pod whatever its revision is
// (processReplica and processCondemned in pkg/controller/statefulset/stateful_set_control.go). A pod without a node cannot be updated in
// place.
func (k kind) Housekeeping(pod *corev1.Pod) *inplace.Reason {
	switch {
	case !readiness.Live(pod):
		return housekeeping("pod %s has terminated", pod)
	case !k.StatefulSet.Wants(k.StatefulSet.Ordinal(pod)):
		return housekeeping("the StatefulSet no longer wants pod %s", pod)
	case pod.Spec.NodeName == "":
		return housekeeping("pod %s is not scheduled yet", pod)
	}
	return nil
}

func housekeeping(format string, pod *corev1.Pod) *inplace.Reason {
	return &inplace.Reason{Code: inplace.CodeHousekeeping, Message: fmt.Sprintf(format, pod.Name)}
}

// Kept implements controllerrevisions.Kind: the controller updates no pod below the partition.
func (k kind) Kept(pod *corev1.Pod) bool {
	return k.StatefulSet.Ordinal(pod) < k.StatefulSet.Partition()
}

// Drains implements controllerrevisions.Kind: see the package's comment.
func (k kind) Drains() bool { return !k.StatefulSet.Ordered() }

// Gates implements controllerrevisions.Kind: see the package's comment.
func (kind) Gates() bool { return false }

// WatchesRevisions implements controllerrevisions.Kind: NewStatefulSetController in pkg/controller/statefulset/stateful_set.go.
func (kind) WatchesRevisions() bool { return false }

// Reachable implements controllerrevisions.Kind.
func (k kind) Reachable(pod *corev1.Pod) bool {
	node, known := k.nodes[pod.Spec.NodeName]
	if !known {
		return k.Seen.Nodes == nil
	}
	return !nodes.Unreachable(node)
}

// ReachingPods implements controllerrevisions.Kind.
func (kind) ReachingPods(change edit.Change) edit.Change { return change }

// Compare implements controllerrevisions.Kind: the highest ordinal comes first.
func (k kind) Compare(a, b *corev1.Pod) int {
	return cmp.Or(k.StatefulSet.Ordinal(b)-k.StatefulSet.Ordinal(a), cmp.Compare(a.Name, b.Name))
}
