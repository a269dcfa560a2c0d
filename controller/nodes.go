package controller

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/stayput/stayput/inplace/readiness"
)

// nodeMatters passes changes of a node by which it becomes unreachable, or reachable again, or runs other pods of a DaemonSet. Nodes change
// in other ways every few seconds.
var nodeMatters = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Node)
		after, isNode := e.ObjectNew.(*corev1.Node)
		return ok && isNode && (readiness.NodeReadiness(before) != readiness.NodeReadiness(after) || admitsOthers(before, after))
	},
}

// admitsOthers reports whether the node may run pods that it did not run before, or may no longer run some.
func admitsOthers(before, after *corev1.Node) bool {
	return !maps.Equal(before.Labels, after.Labels) || !equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints)
}
