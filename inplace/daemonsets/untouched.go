package daemonsets

import (
	"slices"

	"github.com/stayput/stayput/inplace/revisions"
)

func (r Rollout) untouched() bool {
	return r.Seen.Untouched() && !slices.ContainsFunc(r.Revisions, revisions.Marked)
}
