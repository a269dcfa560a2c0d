package steps

import "time"

// To make a plan, Stayput looks at every pod, and each pod of a large workload has events of its own. A plan after each event would cost
// the square of the number of pods, most of it for nothing. So a large workload has a minimum interval between two looks, and events within
// it are handled together. No worker waits for it. After a failure there is no interval: the queue says when to try again.
const (
	// largeWorkload is the number of pods from which on a workload is large.
	largeWorkload = 100
	// intervalPerPod is the part of the minimum interval for each pod: a quarter of a second for 5,000 pods, which is short compared with the
	// time that a pod takes to drain or restart.
	intervalPerPod = 50 * time.Microsecond
)

// MinInterval returns how long Stayput leaves a workload with that many pods alone after a look; 0 for no interval.
func MinInterval(pods int) time.Duration {
	if pods < largeWorkload {
		return 0
	}
	return time.Duration(pods) * intervalPerPod
}
