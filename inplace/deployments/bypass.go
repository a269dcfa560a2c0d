package deployments

import (
	"slices"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/replicas"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/inplace/times"
)

// While Stayput is the only scaler, somebody else may scale all the same: see podstate.SlipPatience. LabelReplicas tells their replicas from ours. What came
// once is taken for borrowed and given back, so that no pod that was there before pays for it, but only when it is clear that it was once.

const whyBypassed = "another client has scaled the ReplicaSets"

// noteBypass notes on the target that somebody else has scaled.
func (v *Planner) noteBypass() {
	if v.NewRS != nil && v.NewRS.Wanted.Updating != "" && slices.ContainsFunc(v.Sets, (*replicas.Set).Bypassed) && !v.bypassKnown() {
		v.NewRS.Wanted.Bypassed = v.seconds()
		v.Result.Bypassed = whyBypassed
	}
}

// bypassKnown: one was noted not long ago.
func (v *Planner) bypassKnown() bool {
	over, _ := times.Since(v.bypassedAt(), podstate.BypassMemory, v.Now)
	return !over
}

// bypassedAt is when a slip was last noted; zero if none was.
func (v *Planner) bypassedAt() time.Time {
	if v.NewRS == nil {
		return time.Time{}
	}
	at := times.TimeOf(v.NewRS.Rs.Labels[inplace.LabelBypassed])
	if at.After(v.Now.Add(podstate.QuietAfterBypass)) {
		return time.Time{} // not written by us
	}
	return at
}

// bypassedAgain: it was not once.
func (v *Planner) bypassedAgain() bool {
	over, _ := times.Since(v.bypassedAt(), podstate.QuietAfterBypass, v.Now)
	return over && v.bypassKnown() && slices.ContainsFunc(v.Sets, (*replicas.Set).Bypassed)
}

// quiet reports whether nobody else scales, as far as can be told by now; if it is only a matter of time, of how much.
func (v *Planner) quiet() (bool, time.Duration) {
	over, wait := times.Since(v.bypassedAt(), podstate.QuietAfterBypass, v.Now)
	return over && !slices.ContainsFunc(v.Sets, (*replicas.Set).Bypassed), wait
}

// awaitQuiet waits for that.
func (v *Planner) awaitQuiet(wait time.Duration) {
	v.Again(wait)
	v.Phase(steps.PhaseWaiting, whyBypassed)
}
