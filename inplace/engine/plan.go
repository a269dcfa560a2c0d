package engine

import (
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/steps"
)

// Planner plans one update of one kind of workload. Its methods stand in the order in which Plan calls them. Those that plan add their
// steps to the Update. What all kinds have in common stands in Plan and FallBack, and in the Update.
type Planner interface {
	// Base returns what every kind has.
	Base() *Update
	// Started returns when the update in progress began; zero if none is in progress.
	Started() time.Time
	// CleanUp removes what Stayput has left where the native controller makes the update, or has nothing to do.
	CleanUp()
	// Budget returns how many more pods may be taken out of service, and why none ever may; empty if some may.
	Budget() (left podstate.Budget, never string)
	// Impossible returns why pods, replicas or admission prevent the update in place; nil if they do not.
	Impossible() *inplace.Reason
	// NeedsDryRun reports whether pods are to change and it is not known what admission makes of new pods.
	NeedsDryRun() bool
	// AskDryRun asks for the dry run. Until there is an answer everything stays as it is, and pods keep their turns.
	AskDryRun()
	// Proceed takes the next steps. It returns why the update cannot go on in place; nil if it can.
	Proceed() *inplace.Reason
	// LeftToDo reports whether the native controllers would have something left to do.
	LeftToDo() bool
	// FallBack leaves marks and pods as the native controller needs them, and nudges it.
	FallBack(why inplace.Reason)
	// ProceedingPhase sets the phase of an update that goes on.
	ProceedingPhase(progress string)
}

// Begin returns a planner that has planned nothing yet. Obstacle is why the update waits instead of falling back; nil if it does not wait
// for that.
type Begin func(obstacle *inplace.Reason) Planner

// Plan returns the next steps. It derives them only from what was observed, so any caller may call it at any moment. If the update turns
// out to be impossible, nothing of the plan so far is written, and the update falls back, or waits: see FallBack.
func Plan(begin Begin) steps.Plan {
	p := begin(nil)
	u := p.Base()
	switch {
	case !u.Decided.Held:
		u.restarts(p)
		putBack(u)
		p.CleanUp()
		return finish(p)
	case u.Decided.Waits:
		return proceed(begin, p)
	}
	if reason := p.Impossible(); reason != nil {
		return FallBack(begin, *reason)
	}
	if p.NeedsDryRun() {
		p.AskDryRun()
		putBack(u)
		u.Plan.Phase(steps.PhaseWaiting, dryrun.Asking)
		return finish(p)
	}
	return proceed(begin, p)
}

// proceed returns the plan of an update that is held.
func proceed(begin Begin, p Planner) steps.Plan {
	u := p.Base()
	u.Plan.ForgetFallback(u.Workload, u.seen.Fallback, false)
	if reason := p.Proceed(); reason != nil {
		return FallBack(begin, *reason)
	}
	putBack(u)
	return finish(p)
}

// FallBack returns the plan by which the update falls back to the native controller. Pods are put back into service as soon as that is
// safe, and pre-pull pods are deleted. If pods are left for the native controller, the fallback is persisted. While the user wants no pod
// to be replaced, it returns a plan by which the update waits instead.
func FallBack(begin Begin, why inplace.Reason) steps.Plan {
	p := begin(nil)
	u := p.Base()
	if u.Decided.Held && u.Awaits(why) {
		return proceed(begin, begin(&why))
	}
	u.Decided = steps.Decision{UpdateRevision: u.Decided.UpdateRevision, Reasons: u.Workload.NotInPlace(inplace.Reasons{why})}
	if p.LeftToDo() {
		u.Plan.PersistFallback(u.Workload, u.Workload.Template.Hash(), why)
	}
	putBack(u)
	u.Plan.DeletePrePullPods(u.seen.Pull.PrePullPods, why.Message)
	p.FallBack(why)
	u.Plan.Phase(steps.PhaseNative, u.Decided.Reasons.String())
	return finish(p)
}

// putBack puts pods back into service that have no turn, at the end of every plan.
func putBack(u *Update) { podstate.PutAllBack(u.Plan, u.States, u.seen.Now) }

// finish returns the plan, with what every plan has: the decision, the progress and the phase.
func finish(p Planner) steps.Plan {
	u := p.Base()
	u.answerRequests(p)
	u.Plan.Arrange()
	u.lookAtWindow()
	u.Plan.Result.Decision, u.Plan.Result.NoDryRun = u.Decided, u.NewPods.Unknown
	u.Plan.Result.Obstacle = u.PartitionNow().Obstacle
	u.Plan.Result.Progress = u.progress(p.Started())
	switch {
	case u.Plan.Result.Phase != "":
	case u.Decided.Native():
		u.Plan.Phase(steps.PhaseNative, u.Decided.Reasons.String())
	case !u.Decided.Held && u.Plan.Result.Progress.Moving == 0:
		u.Plan.Phase(steps.PhaseIdle, "every pod runs what the "+u.Workload.Kind+" says")
	default:
		p.ProceedingPhase(u.Plan.Progress())
	}
	return u.Plan.Result
}
