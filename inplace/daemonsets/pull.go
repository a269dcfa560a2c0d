package daemonsets

import (
	"slices"

	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/prepull"
)

// prePull of a DaemonSet. Pods that go natively, or on nodes that are down, need nothing.
func (v *daemonView) prePull() *prepull.PrePull {
	p := &prepull.PrePull{Draft: &v.Draft, Pulling: v.Pull, AtATime: v.Settings.PrePullParallelism, Nodes: v.nodesByName, Now: v.Now,
		Pods: slices.Collect(v.states()), Reserve: 1}
	p.Pulls = v.room.Pulls(p.AtATime, v.states())
	if v.target != nil {
		p.Workload = prepull.PullerOfDaemonSet(v.DaemonSet, v.target)
		p.Next = prepull.AllToRestart(func(yield func(*member.State) bool) {
			for m := range v.pending() {
				if m.Needs().InPlace() && v.reachable(m.Pod) && !yield(&m.State) {
					return
				}
			}
		})
	}
	return p
}
