package daemonsets

import (
	"slices"

	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/revisions"
)

func (r DaemonRollout) untouched() bool {
	return member.Leaves(r.Mode, r.Pull.Pullers, r.Recorded, r.Pods) && !slices.ContainsFunc(r.Revisions, revisions.Marked)
}
