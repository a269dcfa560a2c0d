package daemonsets

import (
	"slices"

	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// finish adds what every plan says about itself.
func (v *daemonView) finish(turns member.Turns) steps.Plan {
	v.Arrange()
	v.Result.Verdict = v.judged
	v.Result.NotRehearsed = v.rehearsed.Unknown
	v.Result.Progress = v.progress(turns)
	if v.Result.Phase != "" {
		return v.Result
	}
	switch {
	case !v.judged.Held && len(v.judged.Reasons) > 0:
		v.Phase(steps.PhaseNative, v.judged.Reasons.String())
	case !v.judged.Held && v.Result.Progress.Moving == 0:
		v.Phase(steps.PhaseIdle, "every pod runs what the DaemonSet says")
	default:
		v.Phase(steps.PhaseMoving, v.Draft.Progress())
	}
	return v.Result
}

func (v *daemonView) progress(turns member.Turns) steps.Progress {
	progress := steps.Progress{Replicas: int32(v.desired())}
	for _, m := range v.members {
		switch {
		case turns[&m.State] || !m.Arrived || readiness.Closed(m.Pod):
			progress.Moving++
		case v.updated(m):
			progress.Moved++
		}
	}
	if at := slices.IndexFunc(v.Revisions, UnderWay); at >= 0 {
		progress.Started = revisions.StartedAt(v.Revisions[at].Labels[labelUnderWay])
	}
	return progress
}
