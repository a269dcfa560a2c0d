package deployments

import (
	"cmp"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/statuses"
	"github.com/stayput/stayput/inplace/steps"
)

// Plan returns the next steps.
func (r Rollout) Plan() steps.Plan {
	if r.untouched() {
		return steps.NativePlan(r.Seen.Mode)
	}
	return engine.Plan(func() engine.Planner { return r.Planner() })
}

// PodProgress returns what users need to know of each live pod, by name.
func (r Rollout) PodProgress() []podstate.PodProgress {
	v := r.Planner()
	return v.update.PodProgress(v.Sets.AnyUpdating(), v.paused())
}

// Proceed implements engine.Planner. Each part decides whether it has something to do. If the replicas do not add up, it returns that as
// the reason.
func (v *Planner) Proceed() (podstate.Turns, *inplace.Reason) {
	p := v.pacing(v.prePull().Advance(v.paused())).decide()
	v.noteSurge()  // proceed begins with these notes, and rewrites them where it adds or removes surge pods
	v.noteBypass() // before proceed, which adds and removes marks: a bypass is noted only on a mark that is stored
	v.proceed(p)
	balance, reason := v.balance(p)
	if reason != nil {
		return nil, reason
	}
	v.checkPartition(p)
	v.explainWait() // after the parts that wait for images, which take precedence, and before the status, which says what the update waits for
	v.patchSets(balance)
	v.patchStatus(p.turns)
	return p.turns, nil
}

// Started implements engine.Planner.
func (v *Planner) Started() time.Time {
	var started time.Time
	for _, s := range v.Sets {
		if revisions.Updating(s.Rs) {
			started = revisions.StartedAt(s.Rs.Labels[inplace.LabelUpdating])
		}
	}
	return started
}

// ProceedingPhase implements engine.Planner.
func (v *Planner) ProceedingPhase(progress string) {
	switch {
	case v.paused():
		v.plan.Phase(steps.PhasePaused, progress)
	case v.stage != "":
		v.plan.Phase(steps.PhasePartition, v.stage)
	case v.update.Partition.Flaw(v.update.Pods()) != "":
		v.plan.Phase(steps.PhaseStalled, v.plan.Waiting)
	case statuses.Overdue(v.deployment):
		v.plan.Phase(steps.PhaseStalled, cmp.Or(v.whyNoSurgePod(), progress))
	default:
		v.plan.Phase(steps.PhaseUpdating, progress)
	}
}

// proceed takes the next step with the ReplicaSets.
func (v *Planner) proceed(p pace) {
	switch {
	case v.NewRS == nil && v.recreates():
		v.create()
	case !v.Sets.AnyUpdating():
		v.prepare()
	case !v.Sets.AllUpdating(v.NewRS):
		v.mark()
	default:
		v.movePods(p)
	}
}

// prepare corrects the number of replicas before pods move: the Deployment may have been scaled.
func (v *Planner) prepare() {
	switch quiet, wait := v.quiet(); {
	case !quiet:
		v.awaitQuiet(wait)
	case v.excess() != 0:
		v.plan.Phase(steps.PhaseScaling, "bring the replicas to what the Deployment wants")
		v.scale()
	case v.NewRS == nil:
		v.plan.Phase(steps.PhaseWaiting, "the Deployment controller has not created the new ReplicaSet")
	case !v.Sets.AllObserved():
		v.plan.Phase(steps.PhaseWaiting, "the ReplicaSet controller has not caught up")
	case len(v.withPodsToReplace()) > 0:
		v.plan.Phase(steps.PhaseScaling, "replace pods on unreachable nodes")
		v.replaceUnreachable()
	case !v.paused() && v.unfinished():
		v.mark()
	}
}
