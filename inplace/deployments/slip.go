package deployments

import (
	"slices"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/replicas"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/inplace/times"
)

// While Stayput is the only scaler, somebody else may scale all the same: see member.SlipPatience. LabelReplicas tells their replicas from ours. What came
// once is taken for borrowed and given back, so that no pod that was there before pays for it, but only when it is clear that it was once.

const whyUnsteady = "somebody else has scaled the ReplicaSets"

// noteSlip notes on the target that somebody else has scaled.
func (v *View) noteSlip() {
	if v.Target != nil && v.Target.Wish.Settling != "" && slices.ContainsFunc(v.Sets, (*replicas.Set).Slipped) && !v.slipIsKnown() {
		v.Target.Wish.Slipped = v.seconds()
		v.Result.Bypassed = whyUnsteady
	}
}

// slipIsKnown: one was noted not long ago.
func (v *View) slipIsKnown() bool {
	over, _ := times.Since(v.slippedAt(), member.SlipMemory, v.Now)
	return !over
}

// slippedAt is when a slip was last noted; zero if none was.
func (v *View) slippedAt() time.Time {
	if v.Target == nil {
		return time.Time{}
	}
	at := times.TimeOf(v.Target.Rs.Labels[inplace.LabelSlipped])
	if at.After(v.Now.Add(member.SlipPatience)) {
		return time.Time{} // not written by us
	}
	return at
}

// slipsAgain: it was not once.
func (v *View) slipsAgain() bool {
	over, _ := times.Since(v.slippedAt(), member.SlipPatience, v.Now)
	return over && v.slipIsKnown() && slices.ContainsFunc(v.Sets, (*replicas.Set).Slipped)
}

// steady tells whether nobody else scales, as far as can be told by now; if it is only a matter of time, of how much.
func (v *View) steady() (bool, time.Duration) {
	over, wait := times.Since(v.slippedAt(), member.SlipPatience, v.Now)
	return over && !slices.ContainsFunc(v.Sets, (*replicas.Set).Slipped), wait
}

// awaitSteady waits for that.
func (v *View) awaitSteady(wait time.Duration) {
	v.Again(wait)
	v.Phase(steps.PhaseWaiting, whyUnsteady)
}
