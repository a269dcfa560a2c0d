package engine_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
)

// TestNoPodWaitsForOneThatMayNeverBegin: the user wants a leader to go last. Pods that cannot go before it do not keep it for ever.
func TestNoPodWaitsForOneThatMayNeverBegin(t *testing.T) {
	lead := func(s *podstate.State) { s.Pod.Labels["role"] = "leader" }
	for name, test := range map[string]struct {
		change func(*podstate.State)
		nodes  []*corev1.Node
		waits  bool
	}{
		"it can begin":                        {nil, nil, true},
		"it has begun":                        {func(s *podstate.State) { s.Updated = true }, nil, false},
		"it is out of service":                {func(s *podstate.State) { fixture.Out(s.Pod) }, nil, false},
		"it is a surge pod":                   {func(s *podstate.State) { s.Surge = true }, nil, false},
		"the workload's own partition has it": {func(s *podstate.State) { s.Kept = true }, nil, false},
		"a partition keeps it":                {func(s *podstate.State) { s.AtPartition = true }, nil, false},
		"only a new pod can have the change": {
			func(s *podstate.State) { s.Change.Reasons = inplace.Reasons{{Code: inplace.CodeTemplateField}} }, nil, false},
		"it has no node":       {func(s *podstate.State) { s.Pod.Spec.NodeName = "" }, nil, false},
		"its node is gone":     {nil, []*corev1.Node{{}}, false},
		"its node has no room": {func(s *podstate.State) { s.Infeasible = "too small" }, nil, false},
	} {
		u := toV2(func(r *deployments.Rollout) {
			r.Deployment.Annotations = map[string]string{inplace.AnnotationUpdateLast: "role=leader"}
			r.Seen.Nodes = test.nodes
		}, test.change, lead)
		if waits := u.WaitsToRestart(u.States[1]); waits != test.waits {
			t.Errorf("%s: the leader waits for it: %t", name, waits)
		}
	}
}
