package deployments

import (
	"github.com/stayput/stayput/inplace/prepull"
)

// prePull returns the pre-pull of a Deployment. The controller of its pods is the Deployment: the Deployment controller treats only
// ReplicaSets as its own.
func (v *Planner) prePull() *prepull.PrePull {
	reserve := 1 + int(v.deployment.MaxSurge())
	if v.NewRS == nil {
		return v.update.PrePull(reserve, prepull.PodOwner{}, nil)
	}
	return v.update.PrePull(reserve, prepull.OwnedBy(v.deployment, v.NewRS.Rs.UID, "Deployment", v.deployment), v.update.Pods())
}
