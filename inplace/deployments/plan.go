package deployments

import (
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/steps"
)

// Plan returns the next steps. It derives them only from what was observed, so any caller may call it at any moment.
func (r Rollout) Plan() steps.Plan {
	if r.untouched() {
		return steps.NativePlan(r.Seen.Mode)
	}
	v := r.Planner()
	if !v.Decided.Held {
		v.cleanUp()
		return v.finish(nil)
	}
	v.Unresized = v.notResized()
	if reason := v.impossible(); reason != nil {
		return r.FallBack(*reason)
	}
	if v.needsDryRun() {
		return v.finish(v.dryRun())
	}
	return v.PlanUpdate()
}

// PlanUpdate returns the plan of an update. If its replicas do not add up, nothing of that plan is written, and the update falls back.
func (v *Planner) PlanUpdate() steps.Plan {
	turns, reason := v.update()
	if reason != nil {
		return v.FallBack(*reason)
	}
	return v.finish(turns)
}

// update plans an update in place from beginning to end; each part decides whether it has something to do. It returns the pods that have
// their turn, or why the update cannot go on in place.
func (v *Planner) update() (podstate.Turns, *inplace.Reason) {
	v.ForgetFallback(v.Deployment, v.Seen.PersistedFallback, false)
	p := v.pace(v.prePull().Advance(v.paused()))
	v.OpenGates(p.turns)
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

// proceed takes the next step with the ReplicaSets.
func (v *Planner) proceed(p pace) {
	switch {
	case v.NewRS == nil && v.recreates():
		v.create()
	case !v.AnyUpdating():
		v.prepare()
	case !v.AllUpdating(v.NewRS):
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
		v.Phase(steps.PhaseScaling, "bring the replicas to what the Deployment wants")
		v.scale()
	case v.NewRS == nil:
		v.Phase(steps.PhaseWaiting, "the Deployment controller has not created the new ReplicaSet")
	case !v.AllObserved():
		v.Phase(steps.PhaseWaiting, "the ReplicaSet controller has not caught up")
	case len(v.withPodsToReplace()) > 0:
		v.Phase(steps.PhaseScaling, "replace pods on unreachable nodes")
		v.replaceUnreachable()
	case !v.paused() && v.unfinished():
		v.mark()
	}
}
