package daemonsets_test

import (
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
