package member

import (
	"fmt"
	"iter"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/steps"
)

// DefaultDeadline is how long a kubelet has for a resize where the workload has no progressDeadlineSeconds: what that is by default.
const DefaultDeadline = 10 * time.Minute

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
