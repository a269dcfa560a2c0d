package inplace

import "time"

// Each write to a ReplicaSet, a Deployment or a pod wakes native controllers, whose own writes are refused or follow with statuses, and each of
// those is written for all pods that are concerned at once. So what comes within a beat goes together. Nothing depends on it: what is put off is
// due when the beat is over, whatever has come.

// beat is how long something may be put off so that more of its kind can go along.
const beat = 100 * time.Millisecond

// statusBeat is how long a status may be put off of which nothing is urgent.
const statusBeat = 500 * time.Millisecond

// PutOff is what a plan may put off.
type PutOff string

// What a plan may put off.
const (
	putOffStart  PutOff = "start"  // that further pods are taken out of service
	putOffMove   PutOff = "move"   // that pods which are out of service move
	putOffStatus PutOff = "status" // that people are told of progress
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

// canWait is how much longer something can wait for others to go along, for that long since it was due; 0 if it cannot.
func (d *draft) canWait(what PutOff, most time.Duration, now time.Time) time.Duration {
	if d.beats == nil {
		return 0
	}
	first, known := d.beats[what]
	if !known {
		first = now
	}
	_, left := since(first, most, now)
	return left
}

// putOff has it wait.
func (d *draft) putOff(what PutOff, left time.Duration) {
	d.plan.PutOff = append(d.plan.PutOff, what)
	d.again(left)
}
