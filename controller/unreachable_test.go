package controller

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/controller/gate"
	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/controller/shutdown"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/observe"
)

// TestOpenGatesOnUnreachableNodes checks that a gate opens whatever its node is, because the process that opens it may
// be the last manager. But that must not make a pod Ready whose node is unreachable.
func TestOpenGatesOnUnreachableNodes(t *testing.T) {
	openers := map[string]func(c *cluster, reader observe.Reader, pod types.NamespacedName) error{
		"a leader that stops": func(c *cluster, reader observe.Reader, _ types.NamespacedName) error {
			ctx, cancel := context.WithCancel(c.T.Context())
			cancel()
			return (&shutdown.OfLeader{Cached: reader, Writer: c.writer()}).Start(ctx)
		},
		"the last manager": func(c *cluster, reader observe.Reader, _ types.NamespacedName) error {
			return shutdown.OfProcess(c.T.Context(), c, reader)
		},
		"uninstall": func(c *cluster, reader observe.Reader, _ types.NamespacedName) error {
			return shutdown.Uninstall(c.T.Context(), c, reader)
		},
		"the controller of orphans": func(c *cluster, _ observe.Reader, pod types.NamespacedName) error {
			_, err := c.orphans(c).Reconcile(c.T.Context(), reconcile.Request{NamespacedName: pod})
			return err
		},
		"every manager, for new pods": func(c *cluster, reader observe.Reader, pod types.NamespacedName) error {
			gates := &gate.Gates{Client: c, Cached: reader, Prober: &gate.Prober{Client: c}}
			_, err := gates.Reconcile(c.T.Context(), reconcile.Request{NamespacedName: pod})
			return err
		},
	}
	newPod := map[string]bool{"the last manager": true, "every manager, for new pods": true}
	for name, open := range openers {
		for node, ready := range map[corev1.ConditionStatus]corev1.ConditionStatus{
			corev1.ConditionTrue: corev1.ConditionTrue, corev1.ConditionFalse: corev1.ConditionTrue, corev1.ConditionUnknown: corev1.ConditionFalse,
			"": corev1.ConditionFalse, // it is gone
		} {
			t.Run(name+", node "+string(node), func(t *testing.T) {
				c := newCluster(t)
				before := c.behindItsGate(node, newPod[name])
				key := client.ObjectKeyFromObject(before)
				if err := open(c, observe.Reader{Reader: c}, key); err != nil {
					t.Fatal(err)
				}
				after := c.Pod(key)
				if !apps.IsTrue(after, inplace.ConditionServing) {
					t.Error("the gate is closed")
				}
				after.Status.Conditions = readiness.StoredConditions(before, after, readiness.OwnWriter)
				if is := apps.Condition(after, corev1.PodReady).Status; is != ready {
					t.Errorf("Ready is stored as %s, want %s", is, ready)
				}
			})
		}
	}
}

// behindItsGate adds a pod of no workload. Only its gate keeps it from being Ready. The node's condition Ready has that
// status; "" is no node.
func (c *cluster) behindItsGate(node corev1.ConditionStatus, newPod bool) *corev1.Pod {
	c.T.Helper()
	if node != "" {
		c.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}, Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: node}}}})
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Web.Namespace, Name: "shut"},
		Spec:       corev1.PodSpec{NodeName: "node", ReadinessGates: []corev1.PodReadinessGate{{ConditionType: inplace.ConditionServing}}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: readiness.ReasonGatesNotReady},
		}},
	}
	if !newPod {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: inplace.ConditionServing, Status: corev1.ConditionFalse})
	}
	c.Add(pod)
	return c.Pod(client.ObjectKeyFromObject(pod))
}
