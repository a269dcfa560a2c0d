package inplace

import (
	"strings"
	"testing"
)

// addsUp: no plan of ours is ever given back because its replicas did not add up.
func (w *world) addsUp(plan Plan) {
	for _, reason := range plan.Verdict.Reasons {
		if reason.Code == CodeUnbalanced {
			w.violated("%s", reason.Message)
		}
	}
}

// halfMoved is an update with one pod that is drained, so that its ReplicaSet is lowered next.
func halfMoved() *Rollout {
	r := fixture(2, app{image: "v2"})
	source, target := r.replicaSet("a", app{image: "v1"}, 2), r.replicaSet("b", app{image: "v2"}, 0)
	source.Labels[LabelSettling], target.Labels[LabelSettling] = begun, begun
	r.pod("p", source, drained)
	r.pod("q", source)
	return r
}

// Where a part of the planner errs, the update is given back, and nobody's replicas are written.
func TestReplicasThatDoNotAddUpAreNotWritten(t *testing.T) {
	for name, c := range map[string]struct {
		errs func(v *view)
		want string
	}{
		"nobody errs":                {func(*view) {}, ""},
		"a replica for nobody":       {func(v *view) { v.post(v.target, 1, CauseScaled) }, "all +1 scaled"},
		"the same pod moves twice":   {func(v *view) { v.post(v.sets[0], -1, CauseMoved) }, "web-a -2 moved instead of -1 at most"},
		"it is borrowed, for nobody": {func(v *view) { v.post(v.target, 3, CauseBorrowed) }, "all +3 borrowed"},
	} {
		t.Run(name, func(t *testing.T) {
			v := halfMoved().view()
			c.errs(v)
			plan := v.balanced()
			if c.want == "" {
				if written := scales(plan); !plan.Verdict.Held || written != 1 {
					t.Errorf("held %v, the replicas of %d are written", plan.Verdict.Held, written)
				}
				return
			}
			reasons := plan.Verdict.Reasons
			if plan.Verdict.Held || len(reasons) != 1 || reasons[0].Code != CodeUnbalanced || !strings.Contains(reasons[0].Message, c.want) {
				t.Errorf("held %v, for %v", plan.Verdict.Held, reasons)
			}
			if written := scales(plan); written > 0 || plan.Phase != PhaseNative {
				t.Errorf("phase %s, the replicas of %d are written", plan.Phase, written)
			}
			releases(t, plan)
		})
	}
}

// scales counts the ReplicaSets whose replicas are written.
func scales(plan Plan) int {
	count := 0
	for _, size := range resized(plan) {
		if strings.Contains(size, "→") {
			count++
		}
	}
	return count
}

// releases: the plan leaves the update to the native controller for good.
func releases(t *testing.T, plan Plan) {
	recorded, released := false, false
	for _, step := range plan.Steps {
		switch s := step.(type) {
		case RecordRelease:
			recorded = s.Record.Code == CodeUnbalanced
		case PatchReplicaSet:
			for _, operation := range s.Operations {
				released = released || s.ReplicaSet.Name == "web-b" && operation.Path == pointer("metadata", "labels", LabelReleased)
			}
		}
	}
	if !recorded || !released {
		t.Errorf("recorded %v, the target labelled %v", recorded, released)
	}
}
