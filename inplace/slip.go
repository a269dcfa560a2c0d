package inplace

import (
	"slices"
	"strconv"
	"time"
)

// While Stayput is the only scaler, somebody else may scale all the same: a native write slips past us in the second in which a manager
// was killed, or every one does since the API server no longer reaches the webhooks. LabelReplicas tells their replicas from ours.
//
// What came once is taken for borrowed and given back, so that no pod that was there before pays for it, but only when it is clear that it
// was once. What comes again means two scalers, who miss more pods than may be: then the update is given back.
const (
	slipPatience = 10 * time.Second
	// slipMemory is how long a slip is held against the next.
	slipMemory = 10 * time.Minute
)

const whyUnsteady = "somebody else has scaled the ReplicaSets"

// noteSlip notes on the target that somebody else has scaled.
func (v *view) noteSlip() {
	if v.target != nil && v.target.wish.settling != "" && slices.ContainsFunc(v.sets, (*replicaSet).slipped) && !v.slipIsKnown() {
		v.target.wish.slipped = v.seconds()
		v.plan.Bypassed = whyUnsteady
	}
}

// slipped: the replicas are others than we gave it.
func (s *replicaSet) slipped() bool {
	given, known := s.given()
	return known && given != s.size()
}

// surged is how many replicas somebody else has added.
func (s *replicaSet) surged() int {
	given, known := s.given()
	if !known {
		return 0
	}
	return max(0, s.size()-given)
}

// given is how many replicas the ReplicaSet had from us, if it is marked.
func (s *replicaSet) given() (int, bool) {
	given, err := strconv.Atoi(s.rs.Labels[LabelReplicas])
	return given, err == nil && s.rs.Labels[LabelSettling] != ""
}

// slipIsKnown: one was noted not long ago.
func (v *view) slipIsKnown() bool {
	over, _ := since(v.slippedAt(), slipMemory, v.Now)
	return !over
}

// slippedAt is when a slip was last noted; zero if none was.
func (v *view) slippedAt() time.Time {
	if v.target == nil {
		return time.Time{}
	}
	at := timeOf(v.target.rs.Labels[LabelSlipped])
	if at.After(v.Now.Add(slipPatience)) {
		return time.Time{} // not written by us
	}
	return at
}

// slipsAgain: it was not once.
func (v *view) slipsAgain() bool {
	over, _ := since(v.slippedAt(), slipPatience, v.Now)
	return over && v.slipIsKnown() && slices.ContainsFunc(v.sets, (*replicaSet).slipped)
}

// steady tells whether nobody else scales, as far as can be told by now; if it is only a matter of time, of how much.
func (v *view) steady() (bool, time.Duration) {
	over, wait := since(v.slippedAt(), slipPatience, v.Now)
	return over && !slices.ContainsFunc(v.sets, (*replicaSet).slipped), wait
}

// awaitSteady waits for that.
func (v *view) awaitSteady(wait time.Duration) {
	v.again(wait)
	v.phase(PhaseWaiting, whyUnsteady)
}
