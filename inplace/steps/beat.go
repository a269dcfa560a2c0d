package steps

import (
	"time"

	"github.com/stayput/stayput/inplace/times"
)

// Each write to a ReplicaSet, a Deployment or a pod wakes native controllers, whose own writes are refused or follow with statuses, and each of
// those is written for all pods that are concerned at once. So what comes within a beat goes together. Nothing depends on it: what is put off is
// due when the beat is over, whatever has come.

// Beat is how long something may be put off so that more of its kind can go along.
const Beat = 100 * time.Millisecond

// StatusBeat is how long a status may be put off of which nothing is urgent.
const StatusBeat = 500 * time.Millisecond

// PutOff is what a plan may put off.
type PutOff string

// What a plan may put off.
const (
	PutOffStart  PutOff = "start"  // that further pods are taken out of service
	PutOffMove   PutOff = "move"   // that pods which are out of service move
	PutOffStatus PutOff = "status" // that people are told of progress
)

// Beats is since when the caller has been told that something is put off. A restart begins anew.
type Beats map[PutOff]time.Time

// Next is what the caller has to remember after a plan.
func (b Beats) Next(plan Plan, now time.Time) Beats {
	next := Beats{}
	for _, what := range plan.PutOff {
		next[what] = now
		if since, known := b[what]; known {
			next[what] = since
		}
	}
	return next
}

// CanWait is how much longer something can wait for others to go along, for that long since it was due; 0 if it cannot.
func (d *Draft) CanWait(what PutOff, most time.Duration, now time.Time) time.Duration {
	if d.Beats == nil {
		return 0
	}
	first, known := d.Beats[what]
	if !known {
		first = now
	}
	_, left := times.Since(first, most, now)
	return left
}

// PutOff has it wait.
func (d *Draft) PutOff(what PutOff, left time.Duration) {
	d.Result.PutOff = append(d.Result.PutOff, what)
	d.Again(left)
}
