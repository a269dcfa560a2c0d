package controllerrevisions

import (
	"slices"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// Rollout is one workload of such a kind with everything on which an update of it depends. As for a deployments.Rollout, no object may be
// older than the caller's own last write to it.
type Rollout struct {
	Kind Kind
	// Revisions are those that the workload controls.
	Revisions []*apps.ControllerRevision
	// Seen is what was observed besides.
	Seen engine.Snapshot
	// HeldSince is the time from which on the caller has held writes of this update; zero if it has not.
	HeldSince time.Time
}

// UpdateRevision returns the owned ControllerRevision with the workload's template; nil as long as the native controller has created none.
func (r Rollout) UpdateRevision() *apps.ControllerRevision {
	return UpdateRevision(r.Revisions, r.Kind.Workload().Template, r.Kind.PodLabel)
}

// untouched reports whether the mode does not manage the workload, and nothing of Stayput is left on it.
func (r Rollout) untouched() bool {
	return r.Seen.Untouched() && !slices.ContainsFunc(r.Revisions, revisions.Marked)
}

// Decision returns whether Stayput makes the update, or the part of it that comes first.
func (r Rollout) Decision() steps.Decision {
	if r.untouched() {
		return steps.NativeDecision(r.Seen.Mode)
	}
	return r.observed().update.Decided
}

// Plan returns the next steps. It has none for the status: the native controllers write it although their DELETEs are refused (syncDaemonSet
// in pkg/controller/daemon/daemon_controller.go, performUpdate in pkg/controller/statefulset/stateful_set_control.go).
func (r Rollout) Plan() steps.Plan {
	if r.untouched() {
		return steps.NativePlan(r.Seen.Mode)
	}
	return engine.Plan(func() engine.Planner { return planner{r.observed()} })
}

// FallBack returns the plan by which the update falls back to the native controller.
func (r Rollout) FallBack(why inplace.Reason) steps.Plan {
	return engine.FallBack(planner{r.observed()}, why)
}

// Nudge returns the steps that nudge the native controller in the middle of an update; none if there is nothing to update.
func (r Rollout) Nudge() []steps.Step {
	if r.untouched() {
		return nil
	}
	return nudger{r.observed()}.once()
}

// PodProgress returns what users need to know of each live pod, in the order of the kind.
func (r Rollout) PodProgress() []podstate.PodProgress {
	return r.observed().update.PodProgress(slices.ContainsFunc(r.Revisions, revisions.Updating), false)
}

// Unfinished reports whether some pod that stays where it is does not have the update revision's identity yet.
func (r Rollout) Unfinished() bool { return r.observed().unfinished() }

// Started reports whether some pod has the update revision's identity already.
func (r Rollout) Started() bool {
	return slices.ContainsFunc(r.observed().live, func(m *Pod) bool { return m.Updated })
}

// WhyNative returns why no update of the workload is made in place, whatever its templates and pods are; nil if one may be.
func (r Rollout) WhyNative() *inplace.Reason { return r.observed().whyNative() }
