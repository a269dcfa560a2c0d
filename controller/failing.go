package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// failingPatience is for how long the writes or the planning of an update may fail before it falls back. In a native
// rollout, nothing that keeps Stayput from writing to pods would stop the rollout.
const failingPatience = 2 * time.Minute

// failing has the times since when workloads fail each time. After a restart these times begin anew.
type failing struct{ notes[time.Time] }

// tooLong notes that a workload fails, and reports whether it has failed for failingPatience. It needs no lock around
// its two steps, because only one worker works on a workload at a time.
func (f *failing) tooLong(workload types.NamespacedName, now time.Time) bool {
	since := f.of(workload)
	if since.IsZero() {
		f.note(workload, now)
		return false
	}
	return now.Sub(since) >= failingPatience
}
