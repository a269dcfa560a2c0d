package inplace

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Phase is what an update is doing.
type Phase string

// The phases.
const (
	PhaseIdle     Phase = "Idle"     // nothing to update
	PhaseNative   Phase = "Native"   // the native controller updates
	PhaseWaiting  Phase = "Waiting"  // for what the native controllers do first
	PhaseScaling  Phase = "Scaling"  // pods are added or removed
	PhaseSettling Phase = "Settling" // pods change their ReplicaSet
	PhaseMoving   Phase = "Moving"   // pods are drained or restart
	PhasePaused   Phase = "Paused"   // by the user
	PhaseStalled  Phase = "Stalled"  // progressDeadlineSeconds have passed
)

// Plan is what to do now.
type Plan struct {
	Verdict Verdict
	// Steps do not depend on one another: all may be carried out now, in the lots of Together, whatever becomes of the others.
	Steps []Step
	Phase Phase
	// Message is one clause about the phase.
	Message string
	// Rehearse is what has to be known first: the plan is made again with the answer. Nil if nothing is asked.
	Rehearse *Rehearse
	// NotRehearsed is why nobody knows what admission makes of new pods; empty if that is known, or not asked.
	NotRehearsed string
	// After: look again then, even if nothing changes; 0 if that is not needed.
	After time.Duration
	// PutOff is what was due and waits for others to go along: see Beats.
	PutOff   []PutOff
	Progress Progress
	// NotPulled is why images are not pulled before containers stop, on one node at least; empty where they are.
	NotPulled string
	// PullFailures tell of images that cannot be pulled, each in a sentence that stays the same while it is tried again.
	PullFailures []string
	// Bypassed tells of a native write that a webhook should have changed or held, and did not; one clause, empty if none is known.
	Bypassed string
}

// Progress counts pods.
type Progress struct {
	// Replicas are those the workload wants, Moved those that run what they should, Moving those being drained or restarting.
	Replicas, Moved, Moving int32
	// Started is when the update was, zero if none is under way.
	Started time.Time
}

// String is the progress in one clause.
func (p Progress) String() string {
	return fmt.Sprintf("%d of %d pods updated, %d restarting", p.Moved, p.Replicas, p.Moving)
}

// Plan returns the next steps, derived from nothing but what was observed: it may be asked at any moment, by anyone.
func (r Rollout) Plan() Plan {
	if r.untouched() {
		return r.Mode.plan()
	}
	v := r.view()
	if !v.judged.Held {
		v.leave()
		return v.finish(nil)
	}
	if reason := v.impossible(); reason != nil {
		return r.Release(*reason)
	}
	if v.unrehearsed() {
		return v.finish(v.rehearse())
	}
	return v.balanced()
}

// balanced is the plan of an update, which is given back if its replicas do not add up: then nothing of that plan is written.
func (v *view) balanced() Plan {
	turns, reason := v.update()
	if reason != nil {
		return v.Release(*reason)
	}
	return v.finish(turns)
}

// impossible is what only pods and replicas tell against an update in place; nil if nothing does.
func (v *view) impossible() *Reason {
	if v.nativeUnderWay() {
		return &Reason{Code: CodeUnderWay, Message: "the Deployment controller has begun a rollout with new pods"}
	}
	if v.slipsAgain() {
		return &Reason{Code: CodeBypassed, Message: "the Deployment controller scales although it should be held: the API server does not reach Stayput's webhooks"}
	}
	return v.notAsRehearsed()
}

// nativeUnderWay: the Deployment controller has given replicas to the target, and nobody of us has had a part in that. Either the
// namespace has just got its label, or writes that should be held are not, since the API server does not reach our webhooks. With two
// scalers at work more pods could be missing than may be.
func (v *view) nativeUnderWay() bool {
	begun := slices.ContainsFunc(v.sets, func(s *replicaSet) bool { return s.wish.settling != "" || s.wish.borrowed != "" })
	return !begun && v.target != nil && v.target.size() > 0
}

// update is the whole story of an update in place; each part finds out by itself whether it is its turn. It returns whose turn it is, or why
// the update must not be.
func (v *view) update() (turns, *Reason) {
	v.forgetRecord(v.Deployment, v.Recorded, false)
	p := v.pace(v.prePull().advance(v.paused()))
	v.gates(p.turns)
	v.account()  // what is noted now is where borrowing and giving back begin, which write it anew
	v.noteSlip() // only on a mark from before, and proceed puts marks on and takes them off
	v.proceed(p)
	balance, reason := v.balance(p)
	if reason != nil {
		return nil, reason
	}
	v.explainWait() // images that are waited for go first, and the status tells what it is
	v.patchSets(balance)
	v.patchStatus()
	return p.turns, nil
}

// proceed does what is next with the ReplicaSets.
func (v *view) proceed(p pace) {
	switch {
	case v.target == nil && v.recreates():
		v.create()
	case !v.settling():
		v.prepare()
	case !v.allSettling():
		v.mark()
	default:
		v.settle(p)
	}
}

// prepare brings the replicas in order before pods move: the Deployment may have been scaled.
func (v *view) prepare() {
	switch steady, wait := v.steady(); {
	case !steady:
		v.awaitSteady(wait)
	case v.excess() != 0:
		v.phase(PhaseScaling, "bring the replicas to what the Deployment wants")
		v.scale()
	case v.target == nil:
		v.phase(PhaseWaiting, "the Deployment controller has not created the new ReplicaSet")
	case !v.still():
		v.phase(PhaseWaiting, "the ReplicaSet controller has not caught up")
	case len(v.withLost()) > 0:
		v.phase(PhaseScaling, "replace pods on nodes that do not answer")
		v.replaceLost()
	case !v.paused() && v.unfinished():
		v.mark()
	}
}

// finish adds what every plan says about itself.
func (v *view) finish(turns turns) Plan {
	v.arrange()
	v.plan.Verdict = v.judged
	v.plan.NotRehearsed = v.rehearsed.Unknown
	v.plan.Progress = v.progress(turns)
	if v.plan.Phase != "" {
		return v.plan
	}
	p := v.plan.Progress
	message := v.draft.progress()
	switch {
	case !v.judged.Held && len(v.judged.Reasons) > 0:
		v.phase(PhaseNative, v.judged.Reasons.String())
	case !v.judged.Held && p.Moving == 0:
		v.phase(PhaseIdle, "every pod runs what the Deployment says")
	case v.paused():
		v.phase(PhasePaused, message)
	case Overdue(v.Deployment):
		v.phase(PhaseStalled, cmp.Or(v.lack(), message))
	default:
		v.phase(PhaseMoving, message)
	}
	return v.plan
}

func (v *view) progress(turns turns) Progress {
	progress := Progress{Replicas: desired(v.Deployment)}
	for _, m := range v.members {
		switch {
		case m.borrowed:
		case turns[&m.podState] || !m.arrived || Closed(m.pod):
			progress.Moving++
		case m.owner == v.target && !m.needs.Left():
			progress.Moved++
		}
	}
	for _, s := range v.sets {
		if Settling(s.rs) {
			progress.Started = startedAt(s.rs.Labels[LabelSettling])
		}
	}
	return progress
}
