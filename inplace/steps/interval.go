package steps

import "time"

// To plan looks at every pod, and each pod of a large workload has events of its own: a plan after each would cost the square of the pods, most
// of it for nothing. So a large workload rests after a look, and what happens meanwhile is looked at together.
const (
	// largeWorkload is how many pods make a workload large.
	largeWorkload = 100
	// intervalPerPod is as long as the events of many pods may gather for, by pod.
	intervalPerPod = 50 * time.Microsecond
	// longestInterval is short beside what a pod takes to drain, or to restart.
	longestInterval = 250 * time.Millisecond
)

// MinInterval is how long a workload with that many pods is left alone after a look; 0 if it is not.
func MinInterval(pods int) time.Duration {
	if pods < largeWorkload {
		return 0
	}
	return min(time.Duration(pods)*intervalPerPod, longestInterval)
}
