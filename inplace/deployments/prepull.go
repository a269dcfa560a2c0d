package deployments

import (
	"slices"

	"github.com/stayput/stayput/inplace/prepull"
)

// prePull returns the pre-pull of a Deployment. The controller of its pods is the Deployment: the Deployment controller treats only
// ReplicaSets as its own.
func (v *Planner) prePull() *prepull.PrePull {
	p := &prepull.PrePull{PlanBuilder: &v.PlanBuilder, Pulling: v.Seen.Pull, AtATime: v.Seen.Settings.PrePullParallelism,
		Nodes: v.NodesByName, Now: v.Seen.Now, Pods: slices.Collect(v.Pods()), Reserve: 1 + int(v.Deployment.MaxSurge())}
	p.Pulls = v.Partition.PrePulls(p.AtATime, v.Pods())
	if v.NewRS != nil {
		p.Workload = prepull.OwnedByDeployment(v.Deployment, v.NewRS.Rs)
		p.Next = prepull.AllToRestart(v.Pods())
	}
	return p
}
