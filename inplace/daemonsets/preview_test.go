package daemonsets_test

import (
	"testing"

	"github.com/stayput/stayput/inplace/internal/fixture"
)

// TestUndoAtAPartition: in the middle of a staged update from v1 to v2, v1 comes back.
func TestUndoAtAPartition(t *testing.T) {
	f := fixture.NewFleet(t, 4)
	f.Seen.Settings.Partition.Value = "3"
	f.Edit(fixture.App{Image: "v2"})
	f.Once()
	before := f.DaemonSet.Spec.Template
	f.Edit(fixture.App{Image: "v1"})
	want := "partition 3 does not apply: an undo takes back all pods that have moved"
	if told := f.DecideEdit(before).AboutPartition(); told != want {
		t.Errorf("users are told %q", told)
	}
}
