package deployments

import (
	"cmp"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// waiting is what an update waits for, each in one clause; empty for nothing.
type waiting struct {
	// flaw is what is wrong with the partition; stage is the partition, if the update waits for nothing else.
	flaw, stage string
	// byWindow: the stage is that a maintenance window is closed.
	byWindow bool
	// why is why nothing restarts: the flaw, or anything else.
	why string
}

// waiting finds out what the update waits for. The parts that wait for images have said so before, and take precedence.
func (o *observed) waiting() waiting {
	var w waiting
	partition, images := o.update.Partition, o.update.Plan.Result.Images
	if !o.sets.anyPod(func(m *Pod) bool { return m.Turn }) && !images.Pulling {
		w.stage, w.byWindow = o.atPartition()
		w.stage = images.After(w.stage)
	}
	w.flaw = partition.Flaw(o.update.States)
	w.why = cmp.Or(w.flaw, o.update.Plan.Waiting)
	if o.sets.Kept > 0 && w.why == "" {
		w.why = partition.Unresized(o.notResized())
	}
	return w
}

// atPartition returns a message that the update waits only for the partition; empty if it waits for anything else, or for nothing; and
// whether it is the maintenance window that it waits for. Pods with their turn, and nodes that pull images, are left out.
func (o *observed) atPartition() (message string, byWindow bool) {
	sets := o.sets
	scaled := sets.Surge() == 0 && sets.Excess() == 0
	if o.paused() || !scaled || !sets.AllUpdating() || !sets.AllObserved() {
		return "", false
	}
	return o.update.Partition.Waits(o.update.States)
}

// Stage returns how far the partition lets the update go, and whether it is there.
func (r Rollout) Stage() steps.Stage {
	o := r.observed()
	stage, byWindow := o.atPartition()
	kept := o.Seen.Settings.Partition.Alone().Keeps(o.sets.Wanted)
	return steps.Stage{Kept: kept, Pods: o.sets.Wanted, Reached: stage != "" && !byWindow}
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
	formula.Waiting, formula.Stage, formula.OnTimeUntil = w.waiting.why, w.waiting.stage, w.onTimeUntil()
	formula.ByWindow = w.waiting.byWindow
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

// canWait returns how long the status can wait, to be written together with what comes next. Counts can wait for a moment that no user
// notices. Changes on which users and tools act are written at once, except while pods change their ReplicaSet: then the sums are from two
// different moments.
func (w status) canWait(next appsv1.DeploymentStatus) time.Duration {
	now := w.Deployment.Status
	switch {
	case SameConditions(now, next):
		return w.update.Plan.CanWait(steps.DeferStatus, steps.StatusBatchWindow, w.Seen.Now)
	case !w.sets.AllObserved() && next.ObservedGeneration == now.ObservedGeneration:
		return w.update.Plan.CanWait(steps.DeferStatus, steps.BatchWindow, w.Seen.Now)
	}
	return 0
}

// onTimeUntil returns the latest time at which pods were drained or stopped within the time that they have for it. As long as no pod is in
// progress because others of all workloads come first, that is now.
func (w status) onTimeUntil() time.Time {
	var until time.Time
	if w.update.Plan.Result.AwaitsLimit.Flag != "" && !w.anyInProgress() {
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
