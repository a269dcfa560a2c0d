package daemonsets

import (
	"slices"

	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/revisions"
)

func (r Rollout) untouched() bool {
	return podstate.Untouched(r.Seen.Mode, r.Seen.Pull.PrePullPods, r.Seen.PersistedFallback, r.Seen.Pods) && !slices.ContainsFunc(r.Revisions, revisions.Marked)
}
