package daemonsets_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

// TestAnUndoGoesOnAfterTheWindow: pods that have moved in the window go back, although the undo began just before the window closed.
func TestAnUndoGoesOnAfterTheWindow(t *testing.T) {
	f := fixture.NewFleet(t, 3)
	window := inplace.Window(fixture.Start.UTC().Format("15:04") + "-" + fixture.Start.Add(time.Hour).UTC().Format("15:04"))
	f.Seen.Settings = f.Seen.Settings.During(window, fixture.Start)
	f.Edit(fixture.App{Image: "v2"})
	f.Rest()
	f.UpdatedTo("2", "v2")
	f.Edit(fixture.App{Image: "v3"})
	for range 20 {
		if f.Once(); f.Seen.Pods[1].Labels[inplace.LabelRevisionHash] == "3" {
			break
		}
	}
	f.Edit(fixture.App{Image: "v2"})
	f.Once()
	f.Seen.Settings = f.Seen.Settings.During(window, fixture.Start.Add(2*time.Hour))
	f.Rest()
	f.UpdatedTo("2", "v2")
}

// TestAnUndoOfAllPodsWaitsForTheWindow: once the update is complete, its undo restarts every pod, as any other edit.
func TestAnUndoOfAllPodsWaitsForTheWindow(t *testing.T) {
	f := fixture.NewFleet(t, 2)
	f.Edit(fixture.App{Image: "v2"})
	f.Rest()
	f.UpdatedTo("2", "v2")
	f.Steps = nil
	before := f.DaemonSet.Spec.Template
	f.Edit(fixture.App{Image: "v1"})
	open := f.Seen.Settings
	f.Seen.Settings = open.During("00:00-00:01", fixture.Start)
	if told := f.DecideEdit(before).AboutPartition(); !strings.HasPrefix(told, "maintenance window is closed: pods stay") {
		t.Errorf("the user is told %q", told)
	}
	f.Rest()
	f.Expect("mark 1 true false", "mark 2 false false")
	f.UpdatedTo("2", "v2")
	f.Seen.Settings = open
	f.Rest()
	f.UpdatedTo("1", "v1")
}
