package deployments

import (
	"cmp"
	"slices"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// Plan returns the next steps.
func (r Rollout) Plan() steps.Plan {
	if engine.Untouched(&r) {
		return steps.NativePlan(r.Seen.Mode)
	}
	return engine.Plan(r.begin)
}

// begin implements engine.Begin.
func (r Rollout) begin(obstacle *inplace.Reason) engine.Planner {
	r.Seen.Obstacle = obstacle
	return planner{r.observed()}
}

// PodProgress returns what users need to know of each live pod, by name.
func (r Rollout) PodProgress() []podstate.PodProgress {
	o := r.observed()
	return o.update.PodProgress(o.sets.AnyUpdating())
}

// Images counts the nodes that have the new images, where a partition keeps all pods.
func (r Rollout) Images() steps.Images { return r.observed().prePull().Images() }

// planner has the order of the stages. Each stage gets what the stage before has decided:
//
//   - pacer: the budget decides which pods have their turn, and which leave their ReplicaSets (pace).
//   - changer: those decide the marks of ReplicaSets and the changes of their replicas (changes).
//   - Ledger.Close: the changes of replicas, if they add up (Balance).
//   - patcher and status write all that.
type planner struct{ *observed }

// Base implements engine.Planner.
func (p planner) Base() *engine.Update { return &p.update }

// Started implements engine.Planner.
func (p planner) Started() time.Time {
	var started time.Time
	for _, s := range p.sets.All {
		if revisions.Updating(s.Rs) {
			started = revisions.StartedAt(s.Rs.Labels[inplace.LabelUpdating])
		}
	}
	return started
}

// Budget implements engine.Planner. There are no surge pods for it.
func (p planner) Budget() (left podstate.Budget, never string) {
	if apps.ExplicitZero(p.Deployment) {
		return podstate.Budget{}, "maxUnavailable 0 means that no pod may be unavailable"
	}
	return p.budgetFor(p.maxUnavailableAlone()), ""
}

// Impossible implements engine.Planner.
func (p planner) Impossible() *inplace.Reason {
	switch unresized := p.notResized(); {
	case nativeRolloutBegun(p.ReplicaSets, p.UpdateRevision()):
		return &inplace.Reason{Code: inplace.CodeNativeRollout, Message: "the Deployment controller has begun a rollout with new pods"}
	case p.bypass.again():
		return &inplace.Reason{Code: inplace.CodeBypassed,
			Message: "the Deployment controller scales although its writes should be held: the API server does not reach Stayput's webhooks"}
	case unresized != nil && (p.sets.Kept == 0 || p.sets.LargestCurrent() == nil): // otherwise the partition keeps pods, or replicas for some
		return unresized
	}
	return p.update.AgainstDryRun(slices.DeleteFunc(slices.Clone(p.update.States), func(s *podstate.State) bool { return s.Surge }))
}

// nativeRolloutBegun reports whether the Deployment controller has given replicas to the new ReplicaSet without Stayput. Either the
// namespace has just been labelled, or writes that should be held are not, because the API server does not reach Stayput's webhooks. If
// two clients scaled at the same time, more pods could become unavailable than may be.
func nativeRolloutBegun(all []*apps.ReplicaSet, newRS *apps.ReplicaSet) bool {
	begun := slices.ContainsFunc(all, func(rs *apps.ReplicaSet) bool {
		return rs.Labels[inplace.LabelUpdating] != "" || rs.Labels[inplace.LabelSurgeReplicas] != ""
	})
	return !begun && newRS != nil && apps.Replicas(newRS) > 0
}

// NeedsDryRun implements engine.Planner. While the rollout is paused no pod begins to move, but pods go back.
func (p planner) NeedsDryRun() bool {
	return p.sets.New != nil && p.update.NewPods.UpdateRevision == "" && p.sets.Unfinished() &&
		(!p.paused() || p.sets.AnyUpdating() || p.sets.anyPod((*Pod).PartiallyPatched))
}

// AskDryRun implements engine.Planner. It leaves everything as it is, and renews the hold.
func (p planner) AskDryRun() {
	newRS := p.sets.New.Rs
	p.update.Plan.Result.DryRun = newPodOf(newRS)
	p.update.Plan.Result.DryRun.Claims = readiness.ClaimsOf(newRS.Spec.Template.Typed().Spec)
	p.pacer() // pods keep their turns
	patcher{observed: p.observed, marks: p.sets.Marking()}.patch()
	p.update.Plan.Result.Images = p.prePull().Images()
	waiting := p.waiting()
	p.update.Plan.Waiting = waiting.why
	status{observed: p.observed, waiting: waiting}.patch()
}

func newPodOf(rs *apps.ReplicaSet) *steps.DryRun {
	return &steps.DryRun{UpdateRevision: rs.UID, Pod: dryrun.NewPod(rs.Spec.Template.Tree(), rs)}
}

// Proceed implements engine.Planner.
func (p planner) Proceed() *inplace.Reason {
	p.prePull().Advance(p.paused())
	pace := p.pace()
	return p.write(pace, p.changes(pace))
}

// pace decides which pods move. Where the templates do not allow the update in place, none does, and partially patched pods go back.
func (p planner) pace() pace {
	pacer := p.pacer()
	if !p.update.Decided.Waits {
		return pacer.decide()
	}
	p.goBack()
	return pacer.pace
}

// write writes the changes and the status, or returns why the update falls back: replicas that do not add up are never written.
func (p planner) write(pace pace, changes changes) *inplace.Reason {
	balance, err := changes.ledger.Close(p.sets.Books(p.maxSurge(), pace.leaving))
	if err != nil {
		return &inplace.Reason{Code: inplace.CodeUnbalanced, Message: "the replicas that Stayput would write do not add up: " + err.Error()}
	}
	waiting := p.waiting()
	waiting.why = cmp.Or(waiting.why, p.forSecondPod())
	p.tell(waiting)
	patcher{p.observed, changes.marks, balance}.patch()
	status{p.observed, waiting}.patch()
	return nil
}

// tell says in the plan what the update waits for.
func (p planner) tell(waiting waiting) {
	plan := p.update.Plan
	plan.Waiting = waiting.why
	if plan.Result.Phase == "" && !p.paused() {
		plan.Phase(waiting.phase, waiting.message)
	}
}

// ProceedingPhase implements engine.Planner.
func (p planner) ProceedingPhase(progress string) {
	switch {
	case p.paused():
		p.update.Plan.Phase(steps.PhasePaused, progress)
	case Overdue(p.Deployment):
		p.update.Plan.Phase(steps.PhaseStalled, cmp.Or(p.surge.whyNone, progress))
	default:
		p.update.ProceedingPhase(progress)
	}
}
