package deployments

import (
	"cmp"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/statuses"
	"github.com/stayput/stayput/inplace/steps"
)

// finish returns the plan.
func (v *Planner) finish(turns podstate.Turns) steps.Plan {
	var started time.Time
	for _, s := range v.Sets {
		if revisions.Updating(s.Rs) {
			started = revisions.StartedAt(s.Rs.Labels[inplace.LabelUpdating])
		}
	}
	return v.Finish("Deployment", apps.Desired(v.Deployment), started, turns, v.phase)
}

// phase sets the phase of an update that goes on.
func (v *Planner) phase(progress string) {
	switch {
	case v.paused():
		v.Phase(steps.PhasePaused, progress)
	case v.stage != "":
		v.Phase(steps.PhasePartition, v.stage)
	case v.Partition.Flaw(v.Pods()) != "":
		v.Phase(steps.PhaseStalled, v.Waiting)
	case statuses.Overdue(v.Deployment):
		v.Phase(steps.PhaseStalled, cmp.Or(v.whyNoSurgePod(), progress))
	default:
		v.Phase(steps.PhaseUpdating, progress)
	}
}
