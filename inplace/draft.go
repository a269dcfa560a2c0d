package inplace

import (
	"slices"
	"strconv"
	"time"
)

// draft is a plan as it grows.
type draft struct {
	plan Plan
	// waiting is for which image nothing restarts, one clause; empty if for none.
	waiting string
	beats   Beats
}

func (d *draft) step(s Step) { d.plan.Steps = append(d.plan.Steps, s) }

// arrange puts first what lets pods serve, then what people are told, and last what takes pods out of service: some of it may fail.
func (d *draft) arrange() {
	slices.SortStableFunc(d.plan.Steps, func(a, b Step) int { return precedence(a) - precedence(b) })
}

func precedence(step Step) int {
	gate, isGate := step.(SetGate)
	_, isRecord := step.(RecordRelease)
	_, isStatus := step.(PatchStatus)
	switch {
	case isRecord, isGate && gate.Open:
		return 0
	case isStatus:
		return 1
	case Closes(step):
		return 3
	}
	return 2
}

// Together splits the steps of a plan into those that may be carried out side by side, one lot after the other.
func Together(steps []Step) [][]Step {
	var lots [][]Step
	for i, step := range steps {
		if i == 0 || precedence(step) != precedence(steps[i-1]) {
			lots = append(lots, nil)
		}
		lots[len(lots)-1] = append(lots[len(lots)-1], step)
	}
	return lots
}

// again asks for another look after that time; 0 for none.
func (d *draft) again(after time.Duration) { d.plan.After = sooner(d.plan.After, after) }

// progress is how far the update is, and what it waits for.
func (d *draft) progress() string {
	if d.waiting == "" {
		return d.plan.Progress.String()
	}
	return d.plan.Progress.String() + "; " + d.waiting
}

func (d *draft) phase(phase Phase, message string) { d.plan.Phase, d.plan.Message = phase, message }

// seconds is how times stand in labels.
func seconds(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

// timeOf reads a time from a label; one that is not ours is zero, and so long ago.
func timeOf(label string) time.Time {
	unix, err := strconv.ParseInt(label, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(unix, 0)
}
