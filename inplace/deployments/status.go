package deployments

import (
	"cmp"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/statuses"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/inplace/times"
)

// patchStatus writes the status, because the native controller fails at a held write before it would. It uses the native formula, so that
// both always write the same status. It leaves it to the native controller to report that the rollout is complete.
func (v *Planner) patchStatus(turns podstate.Turns) {
	if v.NewRS == nil && !v.paused() {
		return // the native controller creates the new ReplicaSet and writes the status next
	}
	formula := v.formula()
	formula.OnTimeUntil = v.onTimeUntil(turns)
	status := formula.NativeStatus()
	if statuses.LooksComplete(v.deployment, status) {
		return
	}
	v.plan.Again(formula.UntilDeadline(status))
	operations := statuses.StatusOperations(v.deployment.Status, status)
	switch left := v.statusCanWait(status); {
	case len(operations) == 0:
	case left > 0:
		v.plan.Defer(steps.DeferStatus, left)
	default:
		v.plan.Step(steps.PatchStatus{Deployment: v.deployment, Status: status, Operations: patches.Guarded(v.deployment, operations...)})
	}
}

// statusCanWait returns how long the status can wait, to be written together with what comes next. Counts can wait for a moment that no
// user notices. Changes on which users and tools act are written at once, except while pods change their ReplicaSet: then the sums are
// from two different moments.
func (v *Planner) statusCanWait(status appsv1.DeploymentStatus) time.Duration {
	switch {
	case statuses.SameConditions(v.deployment.Status, status):
		return v.plan.CanWait(steps.DeferStatus, steps.StatusBatchWindow, v.seen.Now)
	case !v.Sets.AllObserved() && status.ObservedGeneration == v.deployment.Status.ObservedGeneration:
		return v.plan.CanWait(steps.DeferStatus, steps.BatchWindow, v.seen.Now)
	}
	return 0
}

// onTimeUntil returns the latest time at which pods were drained or stopped within the time that they have for it.
func (v *Planner) onTimeUntil(turns podstate.Turns) time.Time {
	var until time.Time
	for s := range v.update.Pods() {
		until = times.Latest(until, turns.OnTimeUntil(s, v.seen.Endpoints, v.seen.Settings.Drain, v.seen.Now))
	}
	return until
}

// stopBy returns the time by which all containers that are to stop must have stopped.
func (v *Planner) stopBy() time.Time {
	var by time.Time
	for s := range v.update.Pods() {
		by = times.Latest(by, s.Move.StopsBy(s.Pod, v.seen.Now))
	}
	return by
}

// checkPartition finds out whether the update waits for the partition alone, or for an invalid partition to be corrected.
func (v *Planner) checkPartition(p pace) {
	if !v.paused() && len(p.turns) == 0 && v.Sets.Surge() == 0 && v.excess() == 0 && v.Sets.AllUpdating(v.NewRS) && v.Sets.AllObserved() {
		v.stage = v.update.Partition.Waits(v.update.Pods())
	}
	v.plan.Waiting = cmp.Or(v.update.Partition.Flaw(v.update.Pods()), v.plan.Waiting, v.update.Partition.Unresized(v.update.Unresized))
}

// formula returns the native formula of the status, with what the update waits for.
func (v *Planner) formula() statuses.Formula {
	f := statuses.Formula{Deployment: v.deployment, Waiting: v.plan.Waiting, Stage: v.stage, Now: v.seen.Now}
	for _, s := range v.Sets {
		f.Sets = append(f.Sets, s.Rs)
	}
	if v.NewRS != nil {
		f.New = v.NewRS.Rs
	}
	return f
}
