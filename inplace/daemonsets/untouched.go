package daemonsets

import (
	"slices"

	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/revisions"
)

func (r Rollout) untouched() bool {
	return podstate.Untouched(r.Mode, r.Pull.PrePullPods, r.PersistedFallback, r.Pods) && !slices.ContainsFunc(r.Revisions, revisions.Marked)
}
