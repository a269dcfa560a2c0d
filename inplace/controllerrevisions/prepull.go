package controllerrevisions

import (
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/prepull"
)

// prePull returns the pre-pull. Its pods are controlled by the update revision: if the workload were their controller, the native
// controller would take them for pods of its own (claimPods by ControllerRef in pkg/controller/controller_ref_manager.go), and delete them.
// Pods that are replaced natively, or whose nodes are unreachable, need none.
func (v *Planner) prePull() *prepull.PrePull {
	return v.Update.PrePull(1, "ControllerRevision", v.UpdateRevision, func(yield func(*podstate.State) bool) {
		for m := range v.pending() {
			if m.Needs().InPlace() && v.kind.Reachable(m.Pod) && !yield(&m.State) {
				return
			}
		}
	})
}
