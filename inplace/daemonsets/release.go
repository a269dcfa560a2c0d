package daemonsets

import (
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// Wake is the step that has the DaemonSet controller look again at an update under way: it follows its ControllerRevisions
// (updateHistory in pkg/controller/daemon/daemon_controller.go). None if there is nothing to update.
func (r DaemonRollout) Wake() []steps.Step {
	if r.untouched() {
		return nil
	}
	v := r.view()
	if !v.unfinished() || len(v.Revisions) == 0 {
		return nil
	}
	first := v.Revisions[0]
	return []steps.Step{steps.PatchRevision{Revision: first, Operations: patches.Guarded(first, revisions.Woken(first.Labels, v.Now)...), Why: revisions.WhyWake}}
}
