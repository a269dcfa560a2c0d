package deployments

import (
	"slices"

	"github.com/stayput/stayput/inplace/prepull"
)

// prePull of a Deployment. Its own controller is the Deployment, which takes only ReplicaSets for its own.
func (v *View) prePull() *prepull.PrePull {
	p := &prepull.PrePull{Draft: &v.Draft, Pulling: v.Pull, AtATime: v.Settings.PrePullParallelism, Nodes: v.nodesByName, Now: v.Now,
		Pods: slices.Collect(v.states()), Reserve: 1 + int(v.Deployment.MaxSurge())}
	p.Pulls = v.room.Pulls(p.AtATime, v.states())
	if v.Target != nil {
		p.Workload = prepull.PullerOfDeployment(v.Deployment, v.Target.Rs)
		p.Next = prepull.AllToRestart(v.states())
	}
	return p
}
