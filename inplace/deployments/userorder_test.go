package deployments_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

// TestLeadersGoLast: r and s have the old revision, and both may be unavailable.
func TestLeadersGoLast(t *testing.T) {
	leads := func(pod *corev1.Pod) { pod.Labels["role"] = "leader" }
	for name, test := range map[string]struct {
		r, s  func(*corev1.Pod)
		steps string
	}{
		"no leader":               {nil, nil, "out r, out s"},
		"r":                       {leads, nil, "out s"},
		"s":                       {nil, leads, "out r"},
		"both":                    {leads, leads, "out r, out s"},
		"r, and s has begun":      {leads, fixture.Out, "2 → 1, out r"},
		"r, and s does not serve": {leads, fixture.Unready, "out s"},
	} {
		t.Run(name, func(t *testing.T) {
			rollout := twoOfFour(nil, nil, test.r, test.s)
			for _, pod := range rollout.Seen.Pods {
				pod.Spec.NodeName = "n" // a pod without a node may never begin
			}
			rollout.Deployment.Annotations = map[string]string{inplace.AnnotationUpdateLast: "role=leader"}
			if planned := fixture.Brief(rollout.Plan().Steps); planned != test.steps {
				t.Errorf("steps are %q, not %q", planned, test.steps)
			}
		})
	}
}

// TestNodesInOrder: p and q are updated, r and s have the old revision. Two of them may be unavailable.
func TestNodesInOrder(t *testing.T) {
	byZone := map[string]string{inplace.AnnotationUpdateByTopology: "zone"}
	for name, test := range map[string]struct {
		annotations map[string]string
		zones       string // of p, q, r and s
		s           func(*corev1.Pod)
		steps       string
	}{
		"the same zone":                         {byZone, "aaaa", nil, "out r, out s"},
		"another zone":                          {byZone, "bbba", nil, "out s"},
		"another zone, of a pod without a node": {byZone, "bbba", func(pod *corev1.Pod) { pod.Spec.NodeName = "" }, "out r"},
		"a canary node":                         {map[string]string{inplace.AnnotationCanaryNodes: "zone in (c)"}, "abcb", nil, "out r"},
		"canary nodes with updated pods":        {map[string]string{inplace.AnnotationCanaryNodes: "zone=a"}, "aabb", nil, "out r, out s"},
	} {
		t.Run(name, func(t *testing.T) {
			rollout := twoOfFour(nil, nil, nil, nil)
			for i, pod := range rollout.Seen.Pods {
				node := fixture.MountingNode(fmt.Sprint("n", i))
				node.Labels = map[string]string{"zone": test.zones[i : i+1]}
				rollout.Seen.Nodes, pod.Spec.NodeName = append(rollout.Seen.Nodes, node), node.Name
			}
			if test.s != nil {
				test.s(rollout.Seen.Pods[3])
			}
			rollout.Deployment.Annotations = test.annotations
			if planned := fixture.Brief(rollout.Plan().Steps); planned != test.steps {
				t.Errorf("steps are %q, not %q", planned, test.steps)
			}
		})
	}
}
