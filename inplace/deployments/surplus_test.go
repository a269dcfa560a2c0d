package deployments_test

import (
	"testing"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

func TestSurplusPasses(t *testing.T) {
	for name, c := range map[string]struct {
		marked       bool
		size         int32
		passes, full bool
	}{
		"lowered, with surplus pods":       {true, 1, true, true},
		"as many as there are to be":       {true, 2, false, true},
		"one is missing":                   {true, 3, false, false},
		"no update: lowered":               {false, 1, false, false},
		"no update: as many as are wanted": {false, 2, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			rs := fixture.ReplicaSetOf(fixture.New(2, fixture.App{Image: "v2"}), "a", fixture.App{Image: "v1"}, 2)
			rs.Labels[inplace.LabelUpdating] = fixture.Begun
			rs.Spec.Replicas = &c.size
			if !c.marked {
				delete(rs.Labels, inplace.LabelUpdating)
			}
			if passes := deployments.SurplusPasses(rs, 2); passes != c.passes {
				t.Errorf("the surplus passes: %t, want %t", passes, c.passes)
			}
			if full := deployments.Full(rs, 2); full != c.full {
				t.Errorf("full: %t, want %t", full, c.full)
			}
		})
	}
}
