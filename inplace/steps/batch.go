package steps

import (
	"time"

	"github.com/stayput/stayput/inplace/times"
)

// Each write to a ReplicaSet, a Deployment or a pod wakes native controllers, whose own writes are refused or follow with statuses, and each of
// those is written for all pods that are concerned at once. So what comes within a beat goes together. Nothing depends on it: what is put off is
// due when the beat is over, whatever has come.

// BatchWindow is how long something may be put off so that more of its kind can go along.
const BatchWindow = 100 * time.Millisecond

// StatusBatchWindow is how long a status may be put off of which nothing is urgent.
const StatusBatchWindow = 500 * time.Millisecond

// Deferral is what a plan may put off.
type Deferral string

// What a plan may put off.
const (
	DeferStart  Deferral = "start"  // that further pods are taken out of service
	DeferMove   Deferral = "move"   // that pods which are out of service move
	DeferStatus Deferral = "status" // that people are told of progress
)

// Batches is since when the caller has been told that something is put off. A restart begins anew.
type Batches map[Deferral]time.Time

// Next is what the caller has to remember after a plan.
func (b Batches) Next(plan Plan, now time.Time) Batches {
	next := Batches{}
	for _, what := range plan.Deferred {
		next[what] = now
		if since, known := b[what]; known {
			next[what] = since
		}
	}
	return next
}

// CanWait is how much longer something can wait for others to go along, for that long since it was due; 0 if it cannot.
func (d *PlanBuilder) CanWait(what Deferral, most time.Duration, now time.Time) time.Duration {
	if d.Batches == nil {
		return 0
	}
	first, known := d.Batches[what]
	if !known {
		first = now
	}
	_, left := times.Since(first, most, now)
	return left
}

// Defer has it wait.
func (d *PlanBuilder) Defer(what Deferral, left time.Duration) {
	d.Result.Deferred = append(d.Result.Deferred, what)
	d.Again(left)
}
