package deployments

import (
	"slices"
	"time"

	"github.com/stayput/stayput/inplace"
)

// A native write that a webhook should hold may pass all the same. One write can bypass Stayput in the second in which a manager is killed.
// Every write does once the API server no longer reaches the webhooks. Stayput tolerates a single bypass, but starts nothing until it is
// clear that it was single. A second bypass means that the native controller and Stayput both take pods out of service, so that more pods
// are unavailable than may be. Then the update falls back. A bypass is forgotten after inplace.Remembered.
//
// While only Stayput should scale, another client may scale all the same. LabelReplicas tells that
// client's replicas from Stayput's. Replicas that were added once are counted as surge replicas and removed, so that no pod that existed
// before is removed for them. That happens only when it is clear that they were added once.

// QuietAfterBypass is how long no further bypass must come until it is clear that the last one was single.
const QuietAfterBypass = 10 * time.Second

const whyBypassed = "another client has scaled the ReplicaSets"

// bypass is what is known of another client that scales.
type bypass struct {
	// noted is when a bypass was last noted on the update revision; zero if none was.
	noted time.Time
	// seen: a ReplicaSet has other replicas than Stayput gave it.
	seen bool
	now  time.Time
}

func bypassOf(sets Sets, now time.Time) bypass {
	b := bypass{now: now, seen: slices.ContainsFunc(sets.All, (*Set).Bypassed)}
	if sets.New == nil {
		return b
	}
	// A time in the future was not written by Stayput.
	if at := inplace.ParseTime(sets.New.Rs.Labels[inplace.LabelBypassed]); !at.After(now.Add(QuietAfterBypass)) {
		b.noted = at
	}
	return b
}

// known reports whether a bypass was noted recently.
func (b bypass) known() bool {
	forgotten, _ := inplace.Since(b.noted, inplace.Remembered, b.now)
	return !forgotten
}

// again reports whether another client scales again, later than QuietAfterBypass after the bypass that is noted.
func (b bypass) again() bool {
	over, _ := inplace.Since(b.noted, QuietAfterBypass, b.now)
	return over && b.known() && b.seen
}

// over reports whether no other client scales, as far as is known by now; if that is only a matter of time, it returns how long it takes.
func (b bypass) over() (bool, time.Duration) {
	over, wait := inplace.Since(b.noted, QuietAfterBypass, b.now)
	return over && !b.seen, wait
}
