package deployments_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/steps"
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

// TestUndoOfARestartForConfiguration: v1 was marked for changed configuration, and half of the pods have restarted. The others keep what
// they have read if the mark is taken back, and users are told so. Another image does not take it back.
func TestUndoOfARestartForConfiguration(t *testing.T) {
	const told = steps.FormerConfiguration + ": kubectl rollout restart restarts all of them"
	for name, test := range map[string]struct {
		after fixture.App
		begun string
		want  bool
	}{
		"in the middle":               {fixture.App{Image: "v1", Configuration: "0"}, fixture.Begun, true},
		"when all pods have it":       {fixture.App{Image: "v1", Configuration: "0"}, "", false},
		"another image in the middle": {fixture.App{Image: "v2", Configuration: "1"}, fixture.Begun, false},
		"an image alone is undone":    {fixture.App{Image: "v1", Configuration: "1"}, fixture.Begun, false},
	} {
		r := fixture.New(4, test.after)
		first := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1", Configuration: "0"}, 2)
		second := fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v1", Configuration: "1"}, 2)
		first.Labels[inplace.LabelUpdating], second.Labels[inplace.LabelUpdating] = test.begun, test.begun
		first.Labels[inplace.LabelCurrent] = test.begun
		notices := r.DecideEdit(second.Spec.Template).Notices()
		if slices.Contains(notices, told) != test.want || test.want && !steps.IsNotice(told) {
			t.Errorf("%s: users are told %q", name, notices)
		}
	}
}
