package daemonsets

import (
	"slices"

	"github.com/stayput/stayput/inplace/podstate"
)

// PodProgress returns what users need to know of each live pod, by name.
func (r Rollout) PodProgress() []podstate.PodProgress {
	v := r.planner()
	v.applyPartition()
	return v.Update.PodProgress("DaemonSet", slices.ContainsFunc(r.Revisions, Updating), false)
}
