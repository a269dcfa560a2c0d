package inplace

import (
	"strconv"
	"time"
)

// LookAgain is after what time to look again at what may change without an event for the workload: the cache does not follow, no answer has
// come, or the event is of another object. Where there is an event, it comes first.
const LookAgain = 2 * time.Second

// LeaderPatience is how long the rest waits for a leader: to renew its Lease, to begin an update, and to go on with a drain that another
// leader began. It bounds how long Stayput can delay a rollout that it does not carry out, and is long enough for a process that lost the
// Lease on a slow machine to start again.
const LeaderPatience = time.Minute

// Remembered is how long something counts that happened to an update: that native writes bypassed the webhooks, that its pods were refused,
// and since when it has been held. It is longer than any hold lasts without a renewal.
const Remembered = 10 * time.Minute

// FormatTime returns the time in the form that labels have: Unix seconds.
func FormatTime(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

// ParseTime returns the time in a label. A value that does not parse was not written by Stayput and gives the zero time, which is long
// past.
func ParseTime(label string) time.Time {
	unix, err := strconv.ParseInt(label, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(unix, 0)
}

// Since reports whether the duration has passed since start; if not, it returns how much of it is left.
func Since(start time.Time, duration time.Duration, now time.Time) (bool, time.Duration) {
	left := start.Add(duration).Sub(now)
	if left <= 0 {
		return true, 0
	}
	return false, left
}

// Sooner returns the shorter of two waits. A wait of 0 means none.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// Latest returns the later of two times.
func Latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Earliest returns the earlier of two times.
func Earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
