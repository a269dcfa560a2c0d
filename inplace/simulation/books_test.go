package simulation

import (
	"strings"
	"testing"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/ledger"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/steps"
)

// addsUp: no plan of ours is ever given back because its replicas did not add up.
func (w *world) addsUp(plan steps.Plan) {
	for _, reason := range plan.Decision.Reasons {
		if reason.Code == inplace.CodeUnbalanced {
			w.violated("%s", reason.Message)
		}
	}
}

// halfMoved is an update with one pod that is drained, so that its ReplicaSet is lowered next.
func halfMoved() *deployments.Rollout {
	r := fixture(2, app{image: "v2"})
	source, newRS := replicaSetOf(r, "a", app{image: "v1"}, 2), replicaSetOf(r, "b", app{image: "v2"}, 0)
	source.Labels[inplace.LabelUpdating], newRS.Labels[inplace.LabelUpdating] = begun, begun
	podOf(r, "p", source, drained)
	podOf(r, "q", source)
	return r
}

// Where a part of the planner errs, the update is given back, and nobody's replicas are written.
func TestReplicasThatDoNotAddUpAreNotWritten(t *testing.T) {
	for name, c := range map[string]struct {
		errs func(v *deployments.Planner)
		want string
	}{
		"nobody errs":              {func(*deployments.Planner) {}, ""},
		"a replica for nobody":     {func(v *deployments.Planner) { v.Post(v.NewRS, 1, ledger.CauseScaled) }, "all +1 scaled"},
		"the same pod moves twice": {func(v *deployments.Planner) { v.Post(v.Sets[0], -1, ledger.CauseMoved) }, "web-a -2 moved instead of -1 at most"},
		"surge, for no use":        {func(v *deployments.Planner) { v.Post(v.NewRS, 3, ledger.CauseSurge) }, "all +3 surge"},
	} {
		t.Run(name, func(t *testing.T) {
			v := halfMoved().Planner()
			c.errs(v)
			plan := v.Balanced()
			if c.want == "" {
				if written := scales(plan); !plan.Decision.Held || written != 1 {
					t.Errorf("held %v, the replicas of %d are written", plan.Decision.Held, written)
				}
				return
			}
			reasons := plan.Decision.Reasons
			if plan.Decision.Held || len(reasons) != 1 || reasons[0].Code != inplace.CodeUnbalanced || !strings.Contains(reasons[0].Message, c.want) {
				t.Errorf("held %v, for %v", plan.Decision.Held, reasons)
			}
			if written := scales(plan); written > 0 || plan.Phase != steps.PhaseNative {
				t.Errorf("phase %s, the replicas of %d are written", plan.Phase, written)
			}
			fallbacks(t, plan)
		})
	}
}

// scales counts the ReplicaSets whose replicas are written.
func scales(plan steps.Plan) int {
	count := 0
	for _, size := range resized(plan) {
		if strings.Contains(size, "→") {
			count++
		}
	}
	return count
}

// fallbacks: the plan leaves the update to the native controller for good.
func fallbacks(t *testing.T, plan steps.Plan) {
	persistedFallback, fellBack := false, false
	for _, step := range plan.Steps {
		switch s := step.(type) {
		case steps.PersistFallback:
			persistedFallback = s.Fallback.Code == inplace.CodeUnbalanced
		case steps.PatchReplicaSet:
			for _, operation := range s.Operations {
				fellBack = fellBack || s.ReplicaSet.Name == "web-b" && operation.Path == patches.Pointer("metadata", "labels", inplace.LabelFallback)
			}
		}
	}
	if !persistedFallback || !fellBack {
		t.Errorf("recorded %v, the target labelled %v", persistedFallback, fellBack)
	}
}
