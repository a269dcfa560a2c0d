package controllerrevisions

import (
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
)

// LeftToDo implements engine.Planner.
func (p planner) LeftToDo() bool { return p.unfinished() }

// FallBack implements engine.Planner. A partially patched pod has no revision's hash, so the native controller replaces it.
func (p planner) FallBack(inplace.Reason) {
	marks := p.marking()
	marks.end()
	p.nudge(marks, p.unfinished() && p.update.Workload.GetDeletionTimestamp() == nil)
	marks.write(p.observed)
}

// CleanUp implements engine.Planner. If pods are left of an update that Stayput had begun, the update falls back: two controllers that take
// pods down in turns would not know of each other.
func (p planner) CleanUp() {
	p.putBackResizeNoted()
	p.prePull().Finish(p.update.Decided.Reasons)
	left := p.fellBack()
	p.update.Plan.ForgetFallback(p.update.Workload, p.seen.Fallback, left)
	p.nudgeInVain(left)
	// Stayput had begun the update and does not go on, though it still manages the workload.
	if abandoned := p.updating() && p.unfinished() && p.seen.Mode.Manages(); !left && abandoned {
		p.update.Plan.PersistFallback(p.update.Workload, p.update.Workload.Template.Hash(), p.update.Decided.Reasons[0])
		left = true
	}
	marks := p.marking()
	marks.end()
	// The plan gives an update back to a native controller that does not notice when marks go.
	withdraws := !p.kind.Traits().WatchesRevisions && p.owned.began() != "" && p.unfinished()
	p.nudge(marks, left || withdraws)
	marks.write(p.observed)
}

// fellBack reports whether the update fell back, and the native controller has something left to do.
func (p planner) fellBack() bool {
	return p.unfinished() && p.seen.Mode.Manages() && p.seen.WhyFellBack(p.update.Workload) != nil
}

// putBackResizeNoted puts pods back into service whose resize was noted and will never be written.
func (p planner) putBackResizeNoted() {
	for _, m := range p.live {
		if m.MidResize() && readiness.Out(m.Pod) && !m.Unreachable {
			p.update.Plan.Step(podstate.PutBack(m.Pod, p.seen.Now))
		}
	}
}
