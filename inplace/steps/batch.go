package steps

import (
	"cmp"
	"time"

	"github.com/stayput/stayput/inplace"
)

// Each write to a ReplicaSet, a Deployment or a pod causes events for native controllers. Their own writes are refused, or are followed by
// status writes, and each of those is made for all affected pods at once. So Stayput makes writes together that come within one batch
// window: all pods are taken out of service for which other pods become available within it, and an old ReplicaSet is lowered by all pods
// that are drained within it. Nothing depends on it: what is put off is due when the window is over, whatever else has come. A new leader
// begins the window anew. Nothing is put off that lets a pod serve, or that no other write could join.

// BatchWindow is how long something may be put off so that more of its kind can be done together with it.
const BatchWindow = 100 * time.Millisecond

// Deferral is something that a plan may put off.
type Deferral string

// The deferrals.
const (
	DeferStart  Deferral = "start"  // taking further pods out of service
	DeferMove   Deferral = "move"   // moving pods that are out of service
	DeferStatus Deferral = "status" // telling users about progress
)

// Batches maps what is put off to when the caller was first told so. A restart of the manager starts with none.
type Batches map[Deferral]time.Time

// Next returns what the caller has to remember after a plan.
func (b Batches) Next(plan Plan, now time.Time) Batches {
	next := Batches{}
	for _, what := range plan.Deferred {
		next[what] = cmp.Or(b[what], now)
	}
	return next
}

// CanWait returns how much longer something can wait for more of its kind, if it may wait that long from when it was due; 0 if it cannot
// wait.
func (d *PlanBuilder) CanWait(what Deferral, most time.Duration, now time.Time) time.Duration {
	if d.Batches == nil {
		return 0
	}
	_, left := inplace.Since(cmp.Or(d.Batches[what], now), most, now)
	return left
}

// Defer puts it off for the time that is left.
func (d *PlanBuilder) Defer(what Deferral, left time.Duration) {
	d.Result.Deferred = append(d.Result.Deferred, what)
	d.Again(left)
}
