package deployments

import (
	"slices"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/replicas"
)

// impossible is what only pods and replicas tell against an update in place; nil if nothing does.
func (v *Planner) impossible() *inplace.Reason {
	if v.nativeRolloutBegun() {
		return &inplace.Reason{Code: inplace.CodeNativeRollout, Message: "the Deployment controller has begun a rollout with new pods"}
	}
	if v.bypassedAgain() {
		return &inplace.Reason{Code: inplace.CodeBypassed, Message: "the Deployment controller scales although it should be held: the API server does not reach Stayput's webhooks"}
	}
	if v.unresized != nil && !v.partitionHolds() {
		return v.unresized
	}
	return v.againstDryRun()
}

// partitionHolds reports whether the partition keeps pods as they are, or those that are to come in the place of one that is gone.
func (v *Planner) partitionHolds() bool {
	return v.partitioned > 0 && v.LargestCurrent(v.NewRS) != nil
}

func (v *Planner) notResized() *inplace.Reason {
	return podstate.NotResized(&v.PlanBuilder, v.states(), v.Still(), podstate.ResizeDeadline(v.Deployment.Spec.ProgressDeadlineSeconds), v.Now)
}

// nativeRolloutBegun: the Deployment controller has given replicas to the target, and nobody of us has had a part in that. Either the
// namespace has just got its label, or writes that should be held are not, since the API server does not reach our webhooks. With two
// scalers at work more pods could be missing than may be.
func (v *Planner) nativeRolloutBegun() bool {
	begun := slices.ContainsFunc(v.Sets, func(s *replicas.Set) bool { return s.Wanted.Updating != "" || s.Wanted.Surge != "" })
	return !begun && v.NewRS != nil && v.NewRS.Size() > 0
}
