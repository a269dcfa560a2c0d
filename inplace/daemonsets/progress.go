package daemonsets

import (
	"slices"

	"github.com/stayput/stayput/inplace/podstate"
)

// PodProgress returns what users are told of each live pod, by name.
func (r Rollout) PodProgress() []podstate.PodProgress {
	v, replaces := r.planner(), ""
	if !v.Decided.Held && !slices.ContainsFunc(r.Revisions, Updating) {
		replaces = "DaemonSet controller"
	}
	v.applyPartition()
	var all []podstate.PodProgress
	for _, m := range v.pods {
		revision := ""
		if m.revision != nil {
			revision = m.revision.Name
		}
		all = append(all, m.Progress(revision, replaces, v.Seen.Pull.Awaits(m.Pod)))
	}
	return all
}
