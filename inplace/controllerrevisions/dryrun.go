package controllerrevisions

import (
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// NeedsDryRun implements engine.Planner.
func (v *Planner) NeedsDryRun() bool {
	return v.UpdateRevision != nil && v.Update.NewPods.UpdateRevision == "" && v.Unfinished()
}

// AskDryRun implements engine.Planner. The pod of the dry run is in place of one that is to be updated.
func (v *Planner) AskDryRun() podstate.Turns {
	turns := podstate.Turns{}
	for _, m := range v.Live {
		turns[&m.State] = m.Restarts() && readiness.Closed(m.Pod)
	}
	if revisions.Updating(v.UpdateRevision) {
		v.renew()
	}
	for m := range v.pending() {
		if m.Needs().InPlace() {
			v.plan.Result.DryRun = &steps.DryRun{UpdateRevision: v.UpdateRevision.UID, Pod: v.kind.NewPod(v.UpdateRevision, m.Pod)}
			break
		}
	}
	return turns
}

// againstDryRun returns why pods that can be updated in place cannot become what new pods would be; nil if they can.
func (v *Planner) againstDryRun() *inplace.Reason {
	return v.Update.AgainstDryRun(func(yield func(*podstate.State) bool) {
		for m := range v.pending() {
			if m.Needs().InPlace() && !yield(&m.State) {
				return
			}
		}
	})
}
