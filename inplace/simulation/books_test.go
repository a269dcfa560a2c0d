package simulation

import (
	"slices"
	"strings"
	"testing"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/replicas"
	"github.com/stayput/stayput/inplace/steps"
)

// addsUp demands that no update falls back because its replicas do not add up.
func (w *world) addsUp(plan steps.Plan) {
	for _, reason := range plan.Decision.Reasons {
		if reason.Code == inplace.CodeUnbalanced {
			w.violated("%s", reason.Message)
		}
	}
}

// halfMoved returns an update with one drained pod: its ReplicaSet is lowered next.
func halfMoved() *deployments.Rollout {
	r := fixture.New(2, fixture.App{Image: "v2"})
	oldRS, newRS := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 2), fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 0)
	oldRS.Labels[inplace.LabelUpdating], newRS.Labels[inplace.LabelUpdating] = fixture.Begun, fixture.Begun
	fixture.PodOf(r, "p", oldRS, fixture.Drained)
	fixture.PodOf(r, "q", oldRS)
	return r
}

// TestReplicasThatDoNotAddUpAreNotWritten: after an error in one part of the planner the update falls back, and no replicas are written.
func TestReplicasThatDoNotAddUpAreNotWritten(t *testing.T) {
	for name, c := range map[string]struct {
		errs func(v *deployments.Planner)
		want string
	}{
		"no error":                {func(*deployments.Planner) {}, ""},
		"a replica without a pod": {func(v *deployments.Planner) { v.Post(v.NewRS, 1, replicas.CauseScaled) }, "all +1 scaled"},
		"the same pod moves twice": {func(v *deployments.Planner) { v.Post(v.Sets[0], -1, replicas.CauseMoved) },
			"web-a -2 moved instead of -1 at most"},
		"surge without need": {func(v *deployments.Planner) { v.Post(v.NewRS, 3, replicas.CauseSurge) }, "all +3 surge"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := c.errs // only the first planner errs, not that of the fallback
			plan := engine.Plan(func() engine.Planner {
				v := halfMoved().Planner()
				errs(v)
				errs = func(*deployments.Planner) {}
				return v
			})
			if c.want == "" {
				if written := scales(plan); !plan.Decision.Held || written != 1 {
					t.Errorf("held %v, the replicas of %d are written", plan.Decision.Held, written)
				}
				return
			}
			reasons := plan.Decision.Reasons
			if plan.Decision.Held || len(reasons) != 1 || reasons[0].Code != inplace.CodeUnbalanced ||
				!strings.Contains(reasons[0].Message, c.want) {
				t.Errorf("held %v, for %v", plan.Decision.Held, reasons)
			}
			if written := scales(plan); written > 0 || plan.Phase != steps.PhaseNative {
				t.Errorf("phase %s, the replicas of %d are written", plan.Phase, written)
			}
			demandsFallback(t, plan)
		})
	}
}

// scales counts the ReplicaSets whose replicas the plan writes.
func scales(plan steps.Plan) int {
	count := 0
	for _, size := range resized(plan) {
		if strings.Contains(size, "→") {
			count++
		}
	}
	return count
}

// demandsFallback demands that the plan falls back to the native controller for good.
func demandsFallback(t *testing.T, plan steps.Plan) {
	if !slices.ContainsFunc(plan.Steps, func(step steps.Step) bool {
		persisted, is := step.(steps.PersistFallback)
		return is && persisted.Fallback.Code == inplace.CodeUnbalanced
	}) {
		t.Error("the fallback is not persisted")
	}
}
