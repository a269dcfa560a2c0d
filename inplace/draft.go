package inplace

import (
	"strconv"
	"time"
)

// draft is a plan as it grows.
type draft struct{ plan Plan }

func (d *draft) step(s Step) { d.plan.Steps = append(d.plan.Steps, s) }

// again asks for another look after that time; 0 for none.
func (d *draft) again(after time.Duration) { d.plan.After = sooner(d.plan.After, after) }

func (d *draft) phase(phase Phase, message string) { d.plan.Phase, d.plan.Message = phase, message }

// seconds is how times stand in labels.
func seconds(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

// timeOf reads a time from a label; one that is not ours is long ago.
func timeOf(label string) time.Time {
	unix, err := strconv.ParseInt(label, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(unix, 0)
}
