package deployments

import (
	"cmp"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/statuses"
	"github.com/stayput/stayput/inplace/steps"
)

// finish adds what every plan says about itself.
func (v *View) finish(turns member.Turns) steps.Plan {
	v.Arrange()
	v.Result.Verdict = v.judged
	v.Result.NotRehearsed = v.rehearsed.Unknown
	v.Result.Progress = v.progress(turns)
	if v.Result.Phase != "" {
		return v.Result
	}
	p := v.Result.Progress
	message := v.Draft.Progress()
	switch {
	case !v.judged.Held && len(v.judged.Reasons) > 0:
		v.Phase(steps.PhaseNative, v.judged.Reasons.String())
	case !v.judged.Held && p.Moving == 0:
		v.Phase(steps.PhaseIdle, "every pod runs what the Deployment says")
	case v.paused():
		v.Phase(steps.PhasePaused, message)
	case v.stage != "":
		v.Phase(steps.PhasePartition, v.stage)
	case v.room.Flaw(v.states()) != "":
		v.Phase(steps.PhaseStalled, v.Waiting)
	case statuses.Overdue(v.Deployment):
		v.Phase(steps.PhaseStalled, cmp.Or(v.lack(), message))
	default:
		v.Phase(steps.PhaseMoving, message)
	}
	return v.Result
}

func (v *View) progress(turns member.Turns) steps.Progress {
	progress := steps.Progress{Replicas: apps.Desired(v.Deployment)}
	for _, m := range v.Members {
		switch {
		case m.Borrowed:
		case turns[&m.State] || !m.Arrived || readiness.Closed(m.Pod):
			progress.Moving++
		case m.Owner == v.Target && !m.Needs().Left():
			progress.Moved++
		}
	}
	for _, s := range v.Sets {
		if revisions.Settling(s.Rs) {
			progress.Started = revisions.StartedAt(s.Rs.Labels[inplace.LabelSettling])
		}
	}
	return progress
}
