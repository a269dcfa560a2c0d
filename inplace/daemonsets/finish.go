package daemonsets

import (
	"slices"
	"time"

	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// finish returns the plan.
func (v *planner) finish(turns podstate.Turns) steps.Plan {
	var started time.Time
	if at := slices.IndexFunc(v.Revisions, Updating); at >= 0 {
		started = revisions.StartedAt(v.Revisions[at].Labels[labelUpdating])
	}
	return v.Finish("DaemonSet", int32(v.desired()), started, turns, func(progress string) { v.Phase(steps.PhaseUpdating, progress) })
}
