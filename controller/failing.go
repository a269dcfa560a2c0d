package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// failingPatience is how long the writes of an update may fail, or what it takes to plan them, until it is given back. Natively nothing that
// keeps us from writing to pods would stop a rollout.
const failingPatience = 2 * time.Minute

// failing knows since when workloads have failed each time. After a restart the patience begins anew.
type failing struct{ notes[time.Time] }

// tooLong notes that a workload fails, and reports whether it has for longer than there is patience for. Nobody else works on it meanwhile.
func (f *failing) tooLong(workload types.NamespacedName, now time.Time) bool {
	since := f.of(workload)
	if since.IsZero() {
		f.note(workload, now)
		return false
	}
	return now.Sub(since) >= failingPatience
}
