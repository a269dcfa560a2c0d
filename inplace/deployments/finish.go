package deployments

import (
	"cmp"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/statuses"
	"github.com/stayput/stayput/inplace/steps"
)

// finish adds to the plan what every plan has: the decision, the progress and the phase.
func (v *Planner) finish(turns podstate.Turns) steps.Plan {
	v.Arrange()
	v.Result.Decision = v.decided
	v.Result.NoDryRun = v.newPods.Unknown
	v.Result.Progress = v.progress(turns)
	if v.Result.Phase != "" {
		return v.Result
	}
	p := v.Result.Progress
	message := v.PlanBuilder.Progress()
	switch {
	case !v.decided.Held && len(v.decided.Reasons) > 0:
		v.Phase(steps.PhaseNative, v.decided.Reasons.String())
	case !v.decided.Held && p.Moving == 0:
		v.Phase(steps.PhaseIdle, "every pod runs what the Deployment says")
	case v.paused():
		v.Phase(steps.PhasePaused, message)
	case v.stage != "":
		v.Phase(steps.PhasePartition, v.stage)
	case v.partition.Flaw(v.states()) != "":
		v.Phase(steps.PhaseStalled, v.Waiting)
	case statuses.Overdue(v.Deployment):
		v.Phase(steps.PhaseStalled, cmp.Or(v.whyNoSurgePod(), message))
	default:
		v.Phase(steps.PhaseUpdating, message)
	}
	return v.Result
}

func (v *Planner) progress(turns podstate.Turns) steps.Progress {
	progress := steps.Progress{Replicas: apps.Desired(v.Deployment)}
	for _, m := range v.Members {
		switch {
		case m.Surge:
		case turns[&m.State] || !m.Applied || readiness.Closed(m.Pod):
			progress.Moving++
		case m.Owner == v.NewRS && !m.Needs().Left():
			progress.Moved++
		}
	}
	for _, s := range v.Sets {
		if revisions.Updating(s.Rs) {
			progress.Started = revisions.StartedAt(s.Rs.Labels[inplace.LabelUpdating])
		}
	}
	return progress
}
