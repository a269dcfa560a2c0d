package daemonsets

import (
	"slices"

	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/prepull"
)

// prePull returns the pre-pulls of a DaemonSet's update. Pods that are replaced natively, or whose nodes are unreachable, need none.
func (v *planner) prePull() *prepull.PrePull {
	p := &prepull.PrePull{
		PlanBuilder: &v.PlanBuilder, Pulling: v.Seen.Pull, AtATime: v.Seen.Settings.PrePullParallelism, Nodes: v.NodesByName, Now: v.Seen.Now,
		Pods: slices.Collect(v.Pods()), Reserve: 1,
	}
	p.Pulls = v.Partition.PrePulls(p.AtATime, v.Pods())
	if v.updateRevision != nil {
		p.Workload = prepull.OwnedByDaemonSet(v.DaemonSet, v.updateRevision)
		p.Next = prepull.AllToRestart(func(yield func(*podstate.State) bool) {
			for m := range v.pending() {
				if m.Needs().InPlace() && v.reachable(m.Pod) && !yield(&m.State) {
					return
				}
			}
		})
	}
	return p
}
