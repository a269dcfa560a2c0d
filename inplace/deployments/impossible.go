package deployments

import (
	"slices"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/replicas"
)

// Impossible implements engine.Planner.
func (v *Planner) Impossible() *inplace.Reason {
	v.update.Unresized = v.notResized()
	if v.nativeRolloutBegun() {
		return &inplace.Reason{Code: inplace.CodeNativeRollout, Message: "the Deployment controller has begun a rollout with new pods"}
	}
	if v.bypassedAgain() {
		return &inplace.Reason{Code: inplace.CodeBypassed,
			Message: "the Deployment controller scales although its writes should be held: the API server does not reach Stayput's webhooks"}
	}
	if v.update.Unresized != nil && !v.partitionHolds() {
		return v.update.Unresized
	}
	return v.againstDryRun()
}

// partitionHolds reports whether the partition keeps pods at an old revision, or replicas for pods that are to replace missing ones
// there.
func (v *Planner) partitionHolds() bool {
	return v.partitioned > 0 && v.Sets.LargestCurrent(v.NewRS) != nil
}

func (v *Planner) notResized() *inplace.Reason {
	return podstate.NotResized(v.plan, v.update.Pods(), v.Sets.AllObserved(),
		podstate.ResizeDeadline(v.deployment.Spec.ProgressDeadlineSeconds), v.seen.Now)
}

// nativeRolloutBegun reports whether the Deployment controller has given replicas to the new ReplicaSet without Stayput. Either the
// namespace has just been labelled, or writes that should be held are not, because the API server does not reach Stayput's webhooks. If
// two clients scaled at the same time, more pods could become unavailable than may be.
func (v *Planner) nativeRolloutBegun() bool {
	begun := slices.ContainsFunc(v.Sets, func(s *replicas.Set) bool { return s.Wanted.Updating != "" || s.Wanted.Surge != "" })
	return !begun && v.NewRS != nil && v.NewRS.Size() > 0
}
