package controllerrevisions

import (
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/revisions"
)

// keepFallback nudges the native controller as long as that controller has something left to do, where a label on a revision does not
// nudge it. It does so by an annotation on a pod, since that controller watches pods: updatePod in
// pkg/controller/daemon/daemon_controller.go.
func (v *Planner) keepFallback() {
	left := v.Unfinished() && v.seen.Mode.Manages() && v.seen.FellBack(v.Workload.Template)
	v.ForgetFallback(v.Workload, v.seen.PersistedFallback, left)
	if !left || v.UpdateRevision != nil && revisions.FellBack(v.UpdateRevision) {
		return
	}
	podstate.NudgeByPod(&v.PlanBuilder, func(yield func(*podstate.State) bool) {
		for m := range v.pending() {
			if !yield(&m.State) {
				return
			}
		}
	}, revisions.NudgeUnretriedEvery, v.seen.Now)
}
