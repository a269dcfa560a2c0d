package deployments

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// waiting is what an update waits for.
type waiting struct {
	// phase and message are those of Update.AtStage.
	phase   steps.Phase
	message string
	// why is why nothing restarts, one clause; empty for nothing.
	why string
}

// waiting finds out what the update waits for. The parts that wait for images have said so before, and take precedence.
func (o *observed) waiting() waiting {
	var w waiting
	w.phase, w.message = o.update.AtStage(o.settled())
	if w.phase == steps.PhaseStalled {
		w.why = w.message
	}
	w.why = cmp.Or(w.why, o.update.Plan.Awaits())
	if o.sets.Kept > 0 && w.why == "" { // without a partition, an update whose pods do not get their CPU and memory has fallen back before
		w.why = o.update.Partition.Unresized(o.notResized())
	}
	return w
}

// settled reports whether nothing is scaled, controllers have seen all that was written, and the rollout is not paused.
func (o *observed) settled() bool {
	sets := o.sets
	scaled := sets.Surge() == 0 && sets.Excess() == 0
	seen := sets.AllUpdating() && sets.AllObserved()
	return scaled && seen && !o.paused()
}

// Stage returns how far the partition lets the update go, and whether it is there.
func (r Rollout) Stage() steps.Stage {
	o := r.observed()
	phase, _ := o.update.AtStage(o.settled())
	kept := o.Seen.Settings.Partition.Alone().Keeps(o.sets.Wanted)
	return steps.Stage{Kept: kept, Pods: o.sets.Wanted, Reached: phase == steps.PhasePartition}
}

// forSecondPod returns why the update waits if no pod may be unavailable and a second pod may never be able to run.
func (o *observed) forSecondPod() string {
	if o.surge.whyAlone == "" || !o.surge.used || !o.sets.anyPod((*Pod).ToRestart) || o.sets.New.Available() > 0 {
		return ""
	}
	return "waiting for a second pod, as maxUnavailable is 0, and " + o.surge.whyAlone
}

// status writes the status, because the native controller fails at a held write before it would. It uses the native formula, so that both
// always write the same status. It leaves it to the native controller to report that the rollout is complete.
type status struct {
	*observed
	waiting waiting
}

func (w status) patch() {
	if w.sets.New == nil && !w.paused() {
		return // the native controller creates the new ReplicaSet and writes the status next
	}
	d, plan, formula := w.Deployment, w.update.Plan, w.formula()
	formula.Waiting, formula.OnTimeUntil = w.waiting.why, w.onTimeUntil()
	if formula.ByWindow = w.waiting.phase == steps.PhaseWindow; formula.ByWindow || w.waiting.phase == steps.PhasePartition {
		formula.Stage = w.waiting.message
	}
	next := formula.NativeStatus()
	if LooksComplete(d, next) {
		return
	}
	plan.Again(formula.UntilDeadline(next))
	operations := StatusOperations(d.Status, next)
	switch left := w.canWait(next); {
	case len(operations) == 0:
	case left > 0:
		plan.Defer(steps.DeferStatus, left)
	default:
		plan.Step(steps.PatchStatus{Deployment: d, Status: next, Operations: patches.Guarded(d, operations...)})
	}
}

// countsWait is how long a status can wait in which only counts have gone on. Each such write is an event for the Deployment controller,
// which answers it with a scaling that is refused.
const countsWait = time.Second

// canWait returns how long the status can wait, to be written together with what comes next. Changes on which users and tools act are
// written at once, except while pods change their ReplicaSet: then the sums are from two different moments.
func (w status) canWait(next appsv1.DeploymentStatus) time.Duration {
	now := w.Deployment.Status
	switch {
	case SameConditions(now, next):
		return w.update.Plan.CanWait(steps.DeferStatus, countsWait, w.Seen.Now)
	case !w.sets.AllObserved() && next.ObservedGeneration == now.ObservedGeneration:
		return w.update.Plan.CanWait(steps.DeferStatus, steps.BatchWindow, w.Seen.Now)
	}
	return 0
}

// onTimeUntil returns the latest time at which pods were drained or stopped within the time that they have for it. As long as no pod is in
// progress because others of all workloads come first, that is now.
func (w status) onTimeUntil() time.Time {
	var until time.Time
	excused := func(wait steps.Wait) bool { return wait.Excused }
	if slices.ContainsFunc(w.update.Plan.Result.Waits, excused) && !w.anyInProgress() {
		return w.Seen.Now
	}
	for _, s := range w.update.States {
		until = inplace.Latest(until, s.OnTimeUntil(w.Seen.Endpoints, w.Seen.Settings.Drain, w.Seen.Now))
	}
	return until
}

// anyInProgress reports whether a pod is to make the next progress.
func (o *observed) anyInProgress() bool {
	for _, s := range o.update.States {
		starts := s.Updated && !s.Available || s.PartiallyPatched()
		if starts || s.Turn || readiness.Out(s.Pod) {
			return true
		}
	}
	return false
}
