package podstate_test

import (
	"testing"

	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
)

// TestWhichPodsTakePart: the update must not wait for the CPU and memory of a pod that stays as it is. Nodes pull images at a partition for
// pods that restart later, and for no others: images that no pod there will run only fill the disk.
func TestWhichPodsTakePart(t *testing.T) {
	restarts := podstate.Work{Containers: fixture.Reimaged("app", "v2").Containers}
	resizes := podstate.Work{Resizing: true}
	for name, c := range map[string]struct {
		state    podstate.State
		resize   bool
		pullOnly bool
	}{
		"gets CPU":                             {podstate.State{Work: resizes}, true, false},
		"gets nothing":                         {podstate.State{}, false, false},
		"gets CPU after the partition":         {podstate.State{Work: resizes, AtPartition: true}, false, false},
		"restarts":                             {podstate.State{Work: restarts}, false, false},
		"restarts after the partition":         {podstate.State{Work: restarts, AtPartition: true}, false, true},
		"changes no image after the partition": {podstate.State{AtPartition: true}, false, false},
		"a surge pod":                          {podstate.State{Work: restarts, AtPartition: true, Surge: true}, false, false},
		"its node is too small":                {podstate.State{Work: restarts, AtPartition: true, Infeasible: "no"}, false, false},
		"kept by the workload's own partition": {podstate.State{Work: restarts, AtPartition: true, Kept: true}, false, false},
	} {
		if resize, pull := c.state.ToResize(), c.state.PullsOnly(); resize != c.resize || pull != c.pullOnly {
			t.Errorf("%s: to resize %t, and its node only pulls %t", name, resize, pull)
		}
	}
}
