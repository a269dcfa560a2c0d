package controllerrevisions

import (
	"slices"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/revisions"
)

// HoldsCleanup reports whether a DELETE of the ControllerRevision by the native controller is held, and why. That controller keeps the
// revision that it takes for the current one, and those that labels of pods name in its cache (cleanupHistory in
// pkg/controller/daemon/update.go). The label of a partially patched pod names no revision. Labels of other pods name a revision, or are
// about to, that the controller's cache does not show yet. Without their revision, these pods would have to be replaced. HeldSince is the
// time from which on the caller has held writes of this update; zero if it has not.
func (v *Planner) HoldsCleanup(revision *apps.ControllerRevision, heldSince time.Time) (bool, inplace.Reason) {
	if !v.seen.Mode.Manages() {
		return false, *v.seen.Mode.Reason()
	}
	of := slices.IndexFunc(v.Live, func(m *Pod) bool { return m.revision != nil && m.revision.object.UID == revision.UID })
	switch {
	case !v.HoldLasts(heldSince):
		return false, revisions.HoldExpired
	case v.updateUID() == revision.UID:
		return true, inplace.Reason{Message: "the ControllerRevision has the template of the " + v.Update.Workload.Kind}
	case revisions.Started(revision.Labels):
		return true, inplace.Reason{Message: "pods may be moving to the ControllerRevision"}
	case of >= 0:
		return true, inplace.Reason{Message: "pod " + v.Live[of].Pod.Name + " has the ControllerRevision"}
	}
	return false, inplace.Reason{Message: "no pod has the ControllerRevision"}
}

// HoldLasts reports whether writes of this update may still be held: see revisions.HoldLasts.
func (v *Planner) HoldLasts(heldSince time.Time) bool {
	if heldSince.IsZero() {
		heldSince = v.seen.Now
	}
	var labels map[string]string
	if v.UpdateRevision != nil {
		labels = v.UpdateRevision.Labels
	}
	return revisions.HoldLasts(labels, heldSince, v.seen.Now)
}

// GateMoved reports whether another pod may count as available although its gate is or was closed. The kubelet's report of the gate makes
// the native controller look again, and so does every nudge after the update fell back.
func (v *Planner) GateMoved(but *Pod) bool {
	return slices.ContainsFunc(v.Live, func(m *Pod) bool {
		return m.Pod.UID != but.Pod.UID && podstate.GateUnseen(m.Pod, v.seen.Now)
	})
}
