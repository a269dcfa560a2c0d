package controllerrevisions

import (
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// planner has the order of the stages: the marks of revisions come first (marking), then the pods are moved (move), and then the native
// controller is nudged (nudge.go).
type planner struct{ *observed }

// Base implements engine.Planner.
func (p planner) Base() *engine.Update { return &p.update }

// Started implements engine.Planner.
func (p planner) Started() time.Time { return revisions.StartedAt(p.owned.began()) }

// ProceedingPhase implements engine.Planner.
func (p planner) ProceedingPhase(progress string) { p.update.ProceedingPhase(progress) }

// Budget implements engine.Planner. The native controllers let at least one pod be unavailable.
func (p planner) Budget() (left podstate.Budget, never string) { return p.budget(), "" }

// Impossible implements engine.Planner.
func (p planner) Impossible() *inplace.Reason {
	if unresized := p.notResized(); unresized != nil && !p.update.Partition.HoldsPods() {
		return unresized
	}
	return p.update.AgainstDryRun(statesOf(p.pending, inPlace))
}

// NeedsDryRun implements engine.Planner.
func (p planner) NeedsDryRun() bool {
	return p.updateRevision != nil && p.update.NewPods.UpdateRevision == "" && p.unfinished()
}

// AskDryRun implements engine.Planner. The pod of the dry run is in place of one that is to be updated.
func (p planner) AskDryRun() {
	for _, m := range p.live {
		m.Turn = m.Restarts() && readiness.Out(m.Pod)
	}
	if p.updating() {
		p.renewHold()
	}
	for _, m := range p.pending {
		if inPlace(m) {
			p.update.Plan.Result.DryRun = &steps.DryRun{
				UpdateRevision: p.updateRevision.UID, Pod: p.kind.NewPod(p.updateRevision, m.Pod)}
			break
		}
	}
}

// Proceed implements engine.Planner. It marks the update first: a manager that finds the mark later knows that the native controller needs
// a nudge.
func (p planner) Proceed() *inplace.Reason {
	plan := p.update.Plan
	switch {
	case p.updateRevision == nil:
		plan.Phase(steps.PhaseWaiting, "the "+p.update.Workload.Kind+" controller has not created the update revision")
		return nil
	case !p.updating():
		plan.Phase(steps.PhaseUpdating, "mark the update revision")
		marks := p.marking()
		marks.begin(p.observed)
		marks.write(p.observed)
		return nil
	}
	p.renewHold()
	p.movePods()
	return nil
}

func (p planner) renewHold() {
	marks := p.marking()
	marks.renew(p.observed)
	marks.write(p.observed)
}

// movePods moves pods, and nudges the native controller where it is to replace one.
func (p planner) movePods() {
	p.prePull().Advance(false)
	next := p.next()
	p.move(next)
	p.nudgeToReplace(next)
	p.tellPartition()
}

// tellPartition sets the phase if the update waits only for the partition, or if the partition is not valid.
func (p planner) tellPartition() {
	phase, message := p.update.AtStage(true)
	if phase == "" && p.update.Partition.HoldsPods() {
		if message = p.update.Partition.Unresized(p.notResized()); message != "" {
			phase = steps.PhaseUpdating // the native controller may be about to replace the pod
		}
	}
	p.update.Plan.Phase(phase, message)
}
