package daemonsets

import (
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/prepull"
)

// prePull returns the pre-pull of a DaemonSet. Pods that are replaced natively, or whose nodes are unreachable, need none.
func (v *planner) prePull() *prepull.PrePull {
	if v.updateRevision == nil {
		return v.PrePull(1, prepull.PodOwner{}, nil)
	}
	return v.PrePull(1, prepull.OwnedByDaemonSet(v.DaemonSet, v.updateRevision), func(yield func(*podstate.State) bool) {
		for m := range v.pending() {
			if m.Needs().InPlace() && v.reachable(m.Pod) && !yield(&m.State) {
				return
			}
		}
	})
}
