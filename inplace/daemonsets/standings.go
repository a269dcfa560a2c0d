package daemonsets

import (
	"slices"

	"github.com/stayput/stayput/inplace/member"
)

// Standings are what there is to tell people of each live pod, by name.
func (r DaemonRollout) Standings() []member.Standing {
	v, replaces := r.view(), ""
	if !v.judged.Held && !slices.ContainsFunc(r.Revisions, UnderWay) {
		replaces = "DaemonSet controller"
	}
	v.leaveRoom()
	var all []member.Standing
	for _, m := range v.members {
		revision := ""
		if m.revision != nil {
			revision = m.revision.Name
		}
		all = append(all, m.Standing(revision, replaces, v.Pull.Awaits(m.Pod)))
	}
	return all
}
