package deployments

import (
	"github.com/stayput/stayput/inplace/prepull"
)

// prePull returns the pre-pull of a Deployment. The controller of its pods is the Deployment: the Deployment controller treats only
// ReplicaSets as its own.
func (v *Planner) prePull() *prepull.PrePull {
	reserve := 1 + int(v.Deployment.MaxSurge())
	if v.NewRS == nil {
		return v.PrePull(reserve, prepull.PodOwner{}, nil)
	}
	return v.PrePull(reserve, prepull.OwnedBy(v.Deployment, v.NewRS.Rs.UID, "Deployment", v.Deployment), v.Pods())
}
