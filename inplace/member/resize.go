package member

import (
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/steps"
)

// ResizeDeadline is how long a kubelet has for a resize: the workload's progressDeadlineSeconds, or what those are by default where it has none; 0 for as long
// as it takes, as natively (HasProgressDeadline in pkg/controller/deployment/util).
func ResizeDeadline(progressDeadlineSeconds *int32) time.Duration {
	switch {
	case progressDeadlineSeconds == nil:
		return 10 * time.Minute
	case *progressDeadlineSeconds == math.MaxInt32:
		return 0
	}
	return time.Duration(*progressDeadlineSeconds) * time.Second
}

// IsBack tells whether a pod of the target whose resize was taken back can forget it: its containers have again what the target says, or take too
// long for anybody to wait. If it is only a matter of time, of how much.
func (s *State) IsBack(deadline time.Duration, now time.Time) (bool, time.Duration) {
	if !s.OfTarget || len(s.Move.Resize) == 0 || s.Restarts() || s.Resizes() {
		return false, 0
	}
	why, wait := s.Move.WhyNotResized(s.Pod, deadline, now)
	return !s.Resizing || why != "", wait
}

// NotResized is why pods cannot get their CPU and memory where they are; nil if they may. Others could, elsewhere: the update is native then. A pod that
// goes back to what its identity says is not waited for.
func NotResized(d *steps.Draft, pods iter.Seq[*State], deadline time.Duration, now time.Time) *inplace.Reason {
	for s := range pods {
		if s.OfTarget || s.Resizes() { // or is not asked for yet: what its kubelet says is of another
			continue
		}
		why, wait := s.Move.WhyNotResized(s.Pod, deadline, now)
		d.Again(wait)
		if why != "" {
			return &inplace.Reason{Code: inplace.CodeNotResized, Message: fmt.Sprintf("pod %s does not get its CPU and memory: %s", s.Pod.Name, why)}
		}
	}
	return nil
}
