package deployments_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

// TestCordonedNodesAreLast: one of three pods may be unavailable, and the first one is on a cordoned node. Where a surge pod takes the
// place of the last pod, that is to be this one, so that it leaves its node with the update. Elsewhere pods restart in the order of their
// names.
func TestCordonedNodesAreLast(t *testing.T) {
	for surge, want := range map[inplace.Surge]string{inplace.SurgeReplace: "0 → 1, marks, out 2", inplace.SurgeNever: "out 1"} {
		r := fixture.New(3, fixture.App{Image: "v2"})
		r.Seen.Settings.Surge = surge
		rolling := r.Deployment.Spec.Strategy.RollingUpdate
		rolling.MaxUnavailable, rolling.MaxSurge = new(intstr.FromInt32(1)), new(intstr.FromInt32(1))
		a, b := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 3), fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 0)
		a.Labels[inplace.LabelUpdating], b.Labels[inplace.LabelUpdating] = fixture.Begun, fixture.Begun
		for _, name := range []string{"1", "2", "3"} {
			node := fixture.MountingNode("n" + name)
			node.Spec.Unschedulable = name == "1"
			r.Seen.Nodes = append(r.Seen.Nodes, node)
			fixture.PodOf(r, name, a, func(pod *corev1.Pod) { pod.Spec.NodeName = node.Name })
		}
		if planned := withoutStatus(r); planned != want {
			t.Errorf("surge %s: planned %q, want %q", surge, planned, want)
		}
	}
}
