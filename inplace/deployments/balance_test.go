package deployments_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/steps"
)

// TestReplicasThatDoNotAddUpAreNotWritten: a pod is drained, and its ReplicaSet is lowered next. After an error in one part of the planner
// the update falls back, and no replicas are written.
func TestReplicasThatDoNotAddUpAreNotWritten(t *testing.T) {
	for name, c := range map[string]struct {
		posts deployments.Ledger
		want  string
	}{
		"no error":                {nil, ""},
		"a replica without a pod": {deployments.Ledger{{Account: "web-b", By: 1, Why: deployments.CauseScaled}}, "all +1 scaled"},
		"the same pod moves twice": {deployments.Ledger{{Account: "web-a", By: -1, Why: deployments.CauseMoved}},
			"web-a -2 moved instead of -1 at most"},
		"surge without need": {deployments.Ledger{{Account: "web-b", By: 3, Why: deployments.CauseSurge}}, "all +3 surge"},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(2, fixture.App{Image: "v2"})
			oldRS, newRS := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 2), fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 0)
			oldRS.Labels[inplace.LabelUpdating], newRS.Labels[inplace.LabelUpdating] = fixture.Begun, fixture.Begun
			fixture.PodOf(r, "p", oldRS, fixture.Out)
			fixture.PodOf(r, "q", oldRS)
			plan := r.PlanWith(c.posts)
			written := strings.Count(fixture.Brief(plan.Steps), "→")
			if c.want == "" {
				if !plan.Decision.Held || written != 1 {
					t.Errorf("held %v, the replicas of %d are written", plan.Decision.Held, written)
				}
				return
			}
			held, reasons := plan.Decision.Held, plan.Decision.Reasons
			if held || len(reasons) != 1 || reasons[0].Code != inplace.CodeUnbalanced || !strings.Contains(reasons[0].Message, c.want) {
				t.Errorf("held %v, for %v", held, reasons)
			}
			if written > 0 || plan.Phase != steps.PhaseNative || !slices.ContainsFunc(plan.Steps, func(step steps.Step) bool {
				persisted, is := step.(steps.PersistFallback)
				return is && persisted.Fallback.Code == inplace.CodeUnbalanced
			}) {
				t.Errorf("phase %s, the replicas of %d are written: %v", plan.Phase, written, plan.Steps)
			}
		})
	}
}
