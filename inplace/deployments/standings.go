package deployments

import (
	"github.com/stayput/stayput/inplace/member"
)

// Standings are what there is to tell people of each live pod, by name.
func (r Rollout) Standings() []member.Standing {
	v, replaces := r.View(), ""
	if !v.judged.Held && !v.Settling() {
		replaces = "Deployment controller"
	}
	var all []member.Standing
	for _, m := range v.Members {
		before := v.Pull.Awaits(m.Pod)
		if v.paused() {
			before = "the rollout to be resumed"
		}
		all = append(all, m.Standing(m.Owner.Rs.Name, replaces, before))
	}
	return all
}
