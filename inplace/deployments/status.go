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
	if statuses.LooksComplete(v.Deployment, status) {
		return
	}
	v.Again(formula.UntilDeadline(status))
	operations := statuses.StatusOperations(v.Deployment.Status, status)
	switch left := v.statusCanWait(status); {
	case len(operations) == 0:
	case left > 0:
		v.Defer(steps.DeferStatus, left)
	default:
		v.Step(steps.PatchStatus{Deployment: v.Deployment, Status: status, Operations: patches.Guarded(v.Deployment, operations...)})
	}
}

// statusCanWait returns how long the status can wait, to be written together with what comes next. Counts can wait for a moment that no
// user notices. Changes on which users and tools act are written at once, except while pods change their ReplicaSet: then the sums are
// from two different moments.
func (v *Planner) statusCanWait(status appsv1.DeploymentStatus) time.Duration {
	switch {
	case statuses.SameConditions(v.Deployment.Status, status):
		return v.CanWait(steps.DeferStatus, steps.StatusBatchWindow, v.Seen.Now)
	case !v.AllObserved() && status.ObservedGeneration == v.Deployment.Status.ObservedGeneration:
		return v.CanWait(steps.DeferStatus, steps.BatchWindow, v.Seen.Now)
	}
	return 0
}

// onTimeUntil returns the latest time at which pods were drained or stopped within the time that they have for it.
func (v *Planner) onTimeUntil(turns podstate.Turns) time.Time {
	var until time.Time
	for s := range v.Pods() {
		until = times.Latest(until, turns.OnTimeUntil(s, v.Seen.Endpoints, v.Seen.Settings.Drain, v.Seen.Now))
	}
	return until
}

// stopBy returns the time by which all containers that are to stop must have stopped.
func (v *Planner) stopBy() time.Time {
	var by time.Time
	for s := range v.Pods() {
		by = times.Latest(by, s.Move.StopsBy(s.Pod, v.Seen.Now))
	}
	return by
}

// checkPartition finds out whether the update waits for the partition alone, or for an invalid partition to be corrected.
func (v *Planner) checkPartition(p pace) {
	if !v.paused() && len(p.turns) == 0 && v.Surge() == 0 && v.excess() == 0 && v.AllUpdating(v.NewRS) && v.AllObserved() {
		v.stage = v.Partition.Waits(v.Pods())
	}
	v.Waiting = cmp.Or(v.Partition.Flaw(v.Pods()), v.Waiting, v.Partition.Unresized(v.Unresized))
}

// formula returns the native formula of the status, with what the update waits for.
func (v *Planner) formula() statuses.Formula {
	f := statuses.Formula{Deployment: v.Deployment, Waiting: v.Waiting, Stage: v.stage, Now: v.Seen.Now}
	for _, s := range v.Sets {
		f.Sets = append(f.Sets, s.Rs)
	}
	if v.NewRS != nil {
		f.New = v.NewRS.Rs
	}
	return f
}
