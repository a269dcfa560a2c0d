package deployments

import (
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/steps"
)

// Plan returns the next steps, derived from nothing but what was observed: it may be asked at any moment, by anyone.
func (r Rollout) Plan() steps.Plan {
	if r.untouched() {
		return steps.NativePlan(r.Mode)
	}
	v := r.View()
	if !v.judged.Held {
		v.leave()
		return v.finish(nil)
	}
	v.unresized = v.notResized()
	if reason := v.impossible(); reason != nil {
		return r.Release(*reason)
	}
	if v.unrehearsed() {
		return v.finish(v.rehearse())
	}
	return v.Balanced()
}

// Balanced is the plan of an update, which is given back if its replicas do not add up: then nothing of that plan is written.
func (v *View) Balanced() steps.Plan {
	turns, reason := v.update()
	if reason != nil {
		return v.Release(*reason)
	}
	return v.finish(turns)
}

// update is the whole story of an update in place; each part finds out by itself whether it is its turn. It returns whose turn it is, or why
// the update must not be.
func (v *View) update() (member.Turns, *inplace.Reason) {
	v.ForgetRecord(v.Deployment, v.Recorded, false)
	p := v.pace(v.prePull().Advance(v.paused()))
	v.gates(p.turns)
	v.account()  // what is noted now is where borrowing and giving back begin, which write it anew
	v.noteSlip() // only on a mark from before, and proceed puts marks on and takes them off
	v.proceed(p)
	balance, reason := v.balance(p)
	if reason != nil {
		return nil, reason
	}
	v.rest(p)
	v.explainWait() // images that are waited for go first, and the status tells what it is
	v.patchSets(balance)
	v.patchStatus(p.turns)
	return p.turns, nil
}

// proceed does what is next with the ReplicaSets.
func (v *View) proceed(p pace) {
	switch {
	case v.Target == nil && v.recreates():
		v.create()
	case !v.Settling():
		v.prepare()
	case !v.AllSettling(v.Target):
		v.mark()
	default:
		v.settle(p)
	}
}

// prepare brings the replicas in order before pods move: the Deployment may have been scaled.
func (v *View) prepare() {
	switch steady, wait := v.steady(); {
	case !steady:
		v.awaitSteady(wait)
	case v.excess() != 0:
		v.Phase(steps.PhaseScaling, "bring the replicas to what the Deployment wants")
		v.scale()
	case v.Target == nil:
		v.Phase(steps.PhaseWaiting, "the Deployment controller has not created the new ReplicaSet")
	case !v.Still():
		v.Phase(steps.PhaseWaiting, "the ReplicaSet controller has not caught up")
	case len(v.withLost()) > 0:
		v.Phase(steps.PhaseScaling, "replace pods on nodes that do not answer")
		v.replaceLost()
	case !v.paused() && v.unfinished():
		v.mark()
	}
}
