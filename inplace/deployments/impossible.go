package deployments

import (
	"slices"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/replicas"
)

// impossible is what only pods and replicas tell against an update in place; nil if nothing does.
func (v *View) impossible() *inplace.Reason {
	if v.nativeUnderWay() {
		return &inplace.Reason{Code: inplace.CodeUnderWay, Message: "the Deployment controller has begun a rollout with new pods"}
	}
	if v.slipsAgain() {
		return &inplace.Reason{Code: inplace.CodeBypassed, Message: "the Deployment controller scales although it should be held: the API server does not reach Stayput's webhooks"}
	}
	if v.unresized != nil && !v.protects() {
		return v.unresized
	}
	return v.notAsRehearsed()
}

// protects tells whether the partition keeps pods as they are, or those that are to come in the place of one that is gone.
func (v *View) protects() bool {
	return v.keeps > 0 && v.LargestOld(v.Target) != nil
}

func (v *View) notResized() *inplace.Reason {
	return member.NotResized(&v.Draft, v.states(), v.Still(), member.ResizeDeadline(v.Deployment.Spec.ProgressDeadlineSeconds), v.Now)
}

// nativeUnderWay: the Deployment controller has given replicas to the target, and nobody of us has had a part in that. Either the
// namespace has just got its label, or writes that should be held are not, since the API server does not reach our webhooks. With two
// scalers at work more pods could be missing than may be.
func (v *View) nativeUnderWay() bool {
	begun := slices.ContainsFunc(v.Sets, func(s *replicas.Set) bool { return s.Wish.Settling != "" || s.Wish.Borrowed != "" })
	return !begun && v.Target != nil && v.Target.Size() > 0
}
