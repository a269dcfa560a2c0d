package deployments

import (
	"slices"

	"github.com/stayput/stayput/inplace/revisions"
)

// If a workload is not managed, and nothing of Stayput's is left on it, Stayput looks at none of its templates: any user may have written
// them, as many and as large as the API server accepts.

func (r Rollout) untouched() bool {
	return r.Seen.Untouched() && !slices.ContainsFunc(r.ReplicaSets, revisions.Marked)
}
