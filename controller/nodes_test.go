package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestNodeMatters(t *testing.T) {
	ready := corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}
	for what, test := range map[string]struct {
		change func(*corev1.Node)
		passes bool
	}{
		"heartbeat": {func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.Now() }, false},
		"readiness": {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }, true},
		"label":     {func(n *corev1.Node) { n.Labels = map[string]string{"disk": "ssd"} }, true},
		"taint":     {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoExecute}} }, true},
	} {
		before := &corev1.Node{Status: *ready.DeepCopy()}
		after := before.DeepCopy()
		test.change(after)
		if passes := nodeMatters.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); passes != test.passes {
			t.Errorf("%s passes %t", what, passes)
		}
	}
}
