package daemonsets

import (
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/revisions"
)

// keepFallback wakes the DaemonSet controller, as long as there is something left to do for it, where a label does not: by a pod. It follows
// those: updatePod in pkg/controller/daemon/daemon_controller.go.
func (v *planner) keepFallback() {
	left := v.unfinished() && v.Mode.Manages() && v.fallbackPersisted()
	v.ForgetFallback(v.DaemonSet, v.PersistedFallback, left)
	if !left || v.updateRevision != nil && revisions.FellBack(v.updateRevision) {
		return
	}
	podstate.NudgeByPod(&v.PlanBuilder, func(yield func(*podstate.State) bool) {
		for m := range v.pending() {
			if !yield(&m.State) {
				return
			}
		}
	}, revisions.NudgeDaemonSetEvery, v.Now)
}
