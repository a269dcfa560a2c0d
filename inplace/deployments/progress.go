package deployments

import (
	"github.com/stayput/stayput/inplace/podstate"
)

// PodProgress returns what users need to know of each live pod, by name.
func (r Rollout) PodProgress() []podstate.PodProgress {
	v, replaces := r.Planner(), ""
	if !v.Decided.Held && !v.AnyUpdating() {
		replaces = "Deployment controller"
	}
	var all []podstate.PodProgress
	for _, m := range v.Members {
		before := v.Seen.Pull.Awaits(m.Pod)
		if v.paused() {
			before = "the rollout to be resumed"
		}
		all = append(all, m.Progress(m.Owner.Rs.Name, replaces, before))
	}
	return all
}
