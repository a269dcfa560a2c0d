package deployments

import (
	"github.com/stayput/stayput/inplace/podstate"
)

// PodProgress returns what users need to know of each live pod, by name.
func (r Rollout) PodProgress() []podstate.PodProgress {
	v := r.Planner()
	return v.Update.PodProgress("Deployment", v.AnyUpdating(), v.paused())
}
