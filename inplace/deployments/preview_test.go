package deployments_test

import (
	"strings"
	"testing"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

// TestUndoAtAPartition: in the middle of a staged update from v1 to v2, v1 comes back, or v3 comes.
func TestUndoAtAPartition(t *testing.T) {
	for image, want := range map[string]string{
		"v1": "partition 3 does not apply: an undo takes back all pods that have moved",
		"v3": "partition 3: so many pods stay at the current revision",
	} {
		r := fixture.New(4, fixture.App{Image: image})
		first := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 3)
		second := fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 1)
		first.Labels[inplace.LabelUpdating], second.Labels[inplace.LabelUpdating] = fixture.Begun, fixture.Begun
		first.Labels[inplace.LabelCurrent] = fixture.Begun
		r.Seen.Settings.Partition.Value = "3"
		if told := r.DecideEdit(second.Spec.Template).AboutPartition(); !strings.HasPrefix(told, want) {
			t.Errorf("%s: users are told %q", image, told)
		}
	}
}
