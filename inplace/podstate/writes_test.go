package podstate_test

import (
	"testing"

	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
)

// TestWhatWritesSay: events and the log have these texts. None says that nothing changes, or that a pod goes to where it is.
func TestWhatWritesSay(t *testing.T) {
	image := fixture.Reimaged("app", "v2")
	for want, test := range map[string]struct {
		write    podstate.Write
		from, to string
	}{
		"move from a to b, in place: restarts app":                    {podstate.Write{Does: image, Ends: podstate.EndsMoved}, "a", "b"},
		"restart before the move from a to b, in place: restarts app": {podstate.Write{Does: image, Ends: podstate.EndsPartial}, "a", "b"},
		"move from a to b":                                {podstate.Write{Ends: podstate.EndsMoved}, "a", "b"},
		"end of the move to b":                            {podstate.Write{Ends: podstate.EndsMoved}, "b", "b"},
		"back to a, in place: restarts app":               {podstate.Write{Does: image, Ends: podstate.EndsBack}, "a", "a"},
		"back to a":                                       {podstate.Write{Ends: podstate.EndsBack}, "a", "a"},
		"note CPU and memory before the move from a to b": {podstate.Write{Does: edit.Change{}, Ends: podstate.EndsPartial}, "a", "b"},
	} {
		if got := test.write.Describe(test.from, test.to); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
