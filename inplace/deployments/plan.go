package deployments

import (
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/steps"
)

// Plan returns the next steps, derived from nothing but what was observed: it may be asked at any moment, by anyone.
func (r Rollout) Plan() steps.Plan {
	if r.untouched() {
		return steps.NativePlan(r.Mode)
	}
	v := r.Planner()
	if !v.decided.Held {
		v.leave()
		return v.finish(nil)
	}
	v.unresized = v.notResized()
	if reason := v.impossible(); reason != nil {
		return r.FallBack(*reason)
	}
	if v.needsDryRun() {
		return v.finish(v.dryRun())
	}
	return v.Balanced()
}

// Balanced is the plan of an update, which is given back if its replicas do not add up: then nothing of that plan is written.
func (v *Planner) Balanced() steps.Plan {
	turns, reason := v.update()
	if reason != nil {
		return v.FallBack(*reason)
	}
	return v.finish(turns)
}

// update is the whole story of an update in place; each part finds out by itself whether it is its turn. It returns whose turn it is, or why
// the update must not be.
func (v *Planner) update() (podstate.Turns, *inplace.Reason) {
	v.ForgetFallback(v.Deployment, v.PersistedFallback, false)
	p := v.pace(v.prePull().Advance(v.paused()))
	v.gates(p.turns)
	v.noteSurge()  // what is noted now is where borrowing and giving back begin, which write it anew
	v.noteBypass() // only on a mark from before, and proceed puts marks on and takes them off
	v.proceed(p)
	balance, reason := v.balance(p)
	if reason != nil {
		return nil, reason
	}
	v.checkPartition(p)
	v.explainWait() // images that are waited for go first, and the status tells what it is
	v.patchSets(balance)
	v.patchStatus(p.turns)
	return p.turns, nil
}

// proceed does what is next with the ReplicaSets.
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

// prepare brings the replicas in order before pods move: the Deployment may have been scaled.
func (v *Planner) prepare() {
	switch quiet, wait := v.quiet(); {
	case !quiet:
		v.awaitQuiet(wait)
	case v.excess() != 0:
		v.Phase(steps.PhaseScaling, "bring the replicas to what the Deployment wants")
		v.scale()
	case v.NewRS == nil:
		v.Phase(steps.PhaseWaiting, "the Deployment controller has not created the new ReplicaSet")
	case !v.Still():
		v.Phase(steps.PhaseWaiting, "the ReplicaSet controller has not caught up")
	case len(v.withPodsToReplace()) > 0:
		v.Phase(steps.PhaseScaling, "replace pods on nodes that do not answer")
		v.replaceUnreachable()
	case !v.paused() && v.unfinished():
		v.mark()
	}
}
