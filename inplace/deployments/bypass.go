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

// While only Stayput should scale, another client may scale all the same: see podstate.QuietAfterBypass. LabelReplicas tells that
// client's replicas from Stayput's. Replicas that were added once are counted as surge replicas and removed, so that no pod that existed
// before is removed for them. That happens only when it is clear that they were added once.

const whyBypassed = "another client has scaled the ReplicaSets"

// noteBypass notes on the update revision that another client has scaled.
func (v *Planner) noteBypass() {
	if v.NewRS != nil && v.NewRS.Wanted.Updating != "" && slices.ContainsFunc(v.Sets, (*replicas.Set).Bypassed) && !v.bypassKnown() {
		v.NewRS.Wanted.Bypassed = v.seconds()
		v.plan.Result.Bypassed = whyBypassed
	}
}

// bypassKnown reports whether a bypass was noted recently.
func (v *Planner) bypassKnown() bool {
	over, _ := times.Since(v.bypassedAt(), podstate.BypassMemory, v.seen.Now)
	return !over
}

// bypassedAt returns when a bypass was last noted; zero if none was.
func (v *Planner) bypassedAt() time.Time {
	if v.NewRS == nil {
		return time.Time{}
	}
	at := times.TimeOf(v.NewRS.Rs.Labels[inplace.LabelBypassed])
	if at.After(v.seen.Now.Add(podstate.QuietAfterBypass)) {
		return time.Time{} // a time in the future was not written by Stayput
	}
	return at
}

// bypassedAgain reports whether another client scales again, later than podstate.QuietAfterBypass after the bypass that is noted.
func (v *Planner) bypassedAgain() bool {
	over, _ := times.Since(v.bypassedAt(), podstate.QuietAfterBypass, v.seen.Now)
	return over && v.bypassKnown() && slices.ContainsFunc(v.Sets, (*replicas.Set).Bypassed)
}

// quiet reports whether no other client scales, as far as is known by now; if that is only a matter of time, it returns how long it
// takes.
func (v *Planner) quiet() (bool, time.Duration) {
	over, wait := times.Since(v.bypassedAt(), podstate.QuietAfterBypass, v.seen.Now)
	return over && !slices.ContainsFunc(v.Sets, (*replicas.Set).Bypassed), wait
}

// awaitQuiet waits until no other client scales.
func (v *Planner) awaitQuiet(wait time.Duration) {
	v.plan.Again(wait)
	v.plan.Phase(steps.PhaseWaiting, whyBypassed)
}
