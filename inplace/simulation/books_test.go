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
	for _, reason := range plan.Verdict.Reasons {
		if reason.Code == inplace.CodeUnbalanced {
			w.violated("%s", reason.Message)
		}
	}
}

// halfMoved is an update with one pod that is drained, so that its ReplicaSet is lowered next.
func halfMoved() *deployments.Rollout {
	r := fixture(2, app{image: "v2"})
	source, target := replicaSetOf(r, "a", app{image: "v1"}, 2), replicaSetOf(r, "b", app{image: "v2"}, 0)
	source.Labels[inplace.LabelSettling], target.Labels[inplace.LabelSettling] = begun, begun
	podOf(r, "p", source, drained)
	podOf(r, "q", source)
	return r
}

// Where a part of the planner errs, the update is given back, and nobody's replicas are written.
func TestReplicasThatDoNotAddUpAreNotWritten(t *testing.T) {
	for name, c := range map[string]struct {
		errs func(v *deployments.View)
		want string
	}{
		"nobody errs":                {func(*deployments.View) {}, ""},
		"a replica for nobody":       {func(v *deployments.View) { v.Post(v.Target, 1, ledger.CauseScaled) }, "all +1 scaled"},
		"the same pod moves twice":   {func(v *deployments.View) { v.Post(v.Sets[0], -1, ledger.CauseMoved) }, "web-a -2 moved instead of -1 at most"},
		"it is borrowed, for nobody": {func(v *deployments.View) { v.Post(v.Target, 3, ledger.CauseBorrowed) }, "all +3 borrowed"},
	} {
		t.Run(name, func(t *testing.T) {
			v := halfMoved().View()
			c.errs(v)
			plan := v.Balanced()
			if c.want == "" {
				if written := scales(plan); !plan.Verdict.Held || written != 1 {
					t.Errorf("held %v, the replicas of %d are written", plan.Verdict.Held, written)
				}
				return
			}
			reasons := plan.Verdict.Reasons
			if plan.Verdict.Held || len(reasons) != 1 || reasons[0].Code != inplace.CodeUnbalanced || !strings.Contains(reasons[0].Message, c.want) {
				t.Errorf("held %v, for %v", plan.Verdict.Held, reasons)
			}
			if written := scales(plan); written > 0 || plan.Phase != steps.PhaseNative {
				t.Errorf("phase %s, the replicas of %d are written", plan.Phase, written)
			}
			releases(t, plan)
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

// releases: the plan leaves the update to the native controller for good.
func releases(t *testing.T, plan steps.Plan) {
	recorded, released := false, false
	for _, step := range plan.Steps {
		switch s := step.(type) {
		case steps.RecordRelease:
			recorded = s.Record.Code == inplace.CodeUnbalanced
		case steps.PatchReplicaSet:
			for _, operation := range s.Operations {
				released = released || s.ReplicaSet.Name == "web-b" && operation.Path == patches.Pointer("metadata", "labels", inplace.LabelReleased)
			}
		}
	}
	if !recorded || !released {
		t.Errorf("recorded %v, the target labelled %v", recorded, released)
	}
}
