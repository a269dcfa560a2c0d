package deployments_test

import (
	"slices"
	"testing"

	"github.com/stayput/stayput/inplace/steps"
)

// TestNudge: the last manager nudges the controllers whose writes it refused. It nudges the Deployment controller by the newest ReplicaSet,
// and the ReplicaSet controller by each ReplicaSet with surplus pods, because a refused deletion is not tried again.
func TestNudge(t *testing.T) {
	for name, test := range map[string]struct {
		sizes [2]int32
		want  []string
	}{
		"as many as there are to be":       {[2]int32{2, 2}, []string{"web-b"}},
		"the old ReplicaSet has too many":  {[2]int32{1, 3}, []string{"web-a", "web-b"}},
		"the update revision has too many": {[2]int32{2, 1}, []string{"web-b"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := twoOfFour(nil, nil, nil, nil)
			r.ReplicaSets[0].Spec.Replicas, r.ReplicaSets[1].Spec.Replicas = &test.sizes[0], &test.sizes[1]
			var nudged []string
			for _, step := range r.Nudge() {
				patch, ok := step.(steps.PatchReplicaSet)
				if !ok {
					t.Fatalf("%T is no nudge", step)
				}
				nudged = append(nudged, patch.ReplicaSet.Name)
			}
			if !slices.Equal(nudged, test.want) {
				t.Errorf("nudged are %v, want %v", nudged, test.want)
			}
		})
	}
}
