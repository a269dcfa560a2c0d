package deployments_test

import (
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
		"no leader":               {nil, nil, "close r, close s"},
		"r":                       {leads, nil, "close s"},
		"s":                       {nil, leads, "close r"},
		"both":                    {leads, leads, "close r, close s"},
		"r, and s has begun":      {leads, fixture.Drained, "2 → 1, close r"},
		"r, and s does not serve": {leads, fixture.Unready, "close s"},
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
