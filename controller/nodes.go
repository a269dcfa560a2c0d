package controller

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/internal/observe"
)

// nodesOf passes the events of nodes that concern the kind. If it depends on every node, that includes workloads without a pod there.
func nodesOf(kind observe.Kind) predicate.Predicate {
	if kind.OnEveryNode {
		return nodeMatters
	}
	return nodeTurns
}

// nodeMatters passes changes of a node that decide whether the node runs pods of a DaemonSet, or whether these can be
// patched. Nodes change in other ways every few seconds.
var nodeMatters = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Node)
		after, isNode := e.ObjectNew.(*corev1.Node)
		return nodeTurns.Update(e) || ok && isNode && admitsOthers(before, after)
	},
}

// admitsOthers reports whether the node may run pods that it did not run before, or may no longer run some.
func admitsOthers(before, after *corev1.Node) bool {
	return !maps.Equal(before.Labels, after.Labels) || !equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints)
}

// nodeTurns passes changes by which a node becomes unreachable, or reachable again.
var nodeTurns = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Node)
		after, isNode := e.ObjectNew.(*corev1.Node)
		return ok && isNode && readiness.NodeReadiness(before) != readiness.NodeReadiness(after)
	},
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}
