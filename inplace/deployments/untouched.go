package deployments

import (
	"slices"

	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/revisions"
)

// Where a workload is not managed and nothing of ours is left on it, none of its templates is looked at: anybody may have written them,
// and made them as large and as many as the API server takes.

func (r Rollout) untouched() bool {
	return podstate.Untouched(r.Mode, r.Pull.PrePullPods, r.PersistedFallback, r.Pods) && !slices.ContainsFunc(r.ReplicaSets, revisions.Marked)
}
