package daemonsets

import (
	"slices"

	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// finish adds the fields that every plan has: the decision, the progress, the phase and its message.
func (v *planner) finish(turns podstate.Turns) steps.Plan {
	v.Arrange()
	v.Result.Decision = v.decided
	v.Result.NoDryRun = v.newPods.Unknown
	v.Result.Progress = v.progress(turns)
	if v.Result.Phase != "" {
		return v.Result
	}
	switch {
	case !v.decided.Held && len(v.decided.Reasons) > 0:
		v.Phase(steps.PhaseNative, v.decided.Reasons.String())
	case !v.decided.Held && v.Result.Progress.Moving == 0:
		v.Phase(steps.PhaseIdle, "every pod runs what the DaemonSet says")
	default:
		v.Phase(steps.PhaseUpdating, v.PlanBuilder.Progress())
	}
	return v.Result
}

func (v *planner) progress(turns podstate.Turns) steps.Progress {
	progress := steps.Progress{Replicas: int32(v.desired())}
	for _, m := range v.pods {
		switch {
		case turns[&m.State] || !m.Applied || readiness.Closed(m.Pod):
			progress.Moving++
		case v.updated(m):
			progress.Moved++
		}
	}
	if at := slices.IndexFunc(v.Revisions, Updating); at >= 0 {
		progress.Started = revisions.StartedAt(v.Revisions[at].Labels[labelUpdating])
	}
	return progress
}
