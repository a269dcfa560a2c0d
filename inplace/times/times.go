package times

import (
	"strconv"
	"time"
)

// Seconds is how times stand in labels.
func Seconds(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

// TimeOf reads a time from a label; one that is not ours is zero, and so long ago.
func TimeOf(label string) time.Time {
	unix, err := strconv.ParseInt(label, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(unix, 0)
}

// Since reports whether the duration has passed, or how long it still takes.
func Since(start time.Time, duration time.Duration, now time.Time) (bool, time.Duration) {
	left := start.Add(duration).Sub(now)
	if left <= 0 {
		return true, 0
	}
	return false, left
}

// Sooner returns the shorter of two waits, of which 0 is none.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// Latest returns the later of two moments.
func Latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Earliest returns the earlier of two moments.
func Earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
