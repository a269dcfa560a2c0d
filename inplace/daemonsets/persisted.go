package daemonsets

import (
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/revisions"
)

// keepFallback nudges the DaemonSet controller as long as that controller has something left to do, where a label on a revision does not
// nudge it. It does so by an annotation on a pod, since that controller watches pods: updatePod in
// pkg/controller/daemon/daemon_controller.go.
func (v *planner) keepFallback() {
	left := v.unfinished() && v.Seen.Mode.Manages() && v.Seen.FellBack(v.DaemonSet.Spec.Template)
	v.ForgetFallback(v.DaemonSet, v.Seen.PersistedFallback, left)
	if !left || v.updateRevision != nil && revisions.FellBack(v.updateRevision) {
		return
	}
	podstate.NudgeByPod(&v.PlanBuilder, func(yield func(*podstate.State) bool) {
		for m := range v.pending() {
			if !yield(&m.State) {
				return
			}
		}
	}, revisions.NudgeDaemonSetEvery, v.Seen.Now)
}
