package daemonsets

import (
	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/revisions"
)

// keepRecord wakes the DaemonSet controller, as long as there is something left to do for it, where a label does not: by a pod. It follows
// those: updatePod in pkg/controller/daemon/daemon_controller.go.
func (v *daemonView) keepRecord() {
	left := v.unfinished() && v.Mode.Manages() && v.onRecord()
	v.ForgetRecord(v.DaemonSet, v.Recorded, left)
	if !left || v.target != nil && revisions.Released(v.target) {
		return
	}
	member.WakeByPod(&v.Draft, func(yield func(*member.State) bool) {
		for m := range v.pending() {
			if !yield(&m.State) {
				return
			}
		}
	}, revisions.TouchDaemonEvery, v.Now)
}
