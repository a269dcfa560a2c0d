package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// failingPatience is how long the writes of an update may fail, or what it takes to plan them, until it is given back. Natively nothing that
// keeps us from writing to pods would stop a rollout.
const failingPatience = 2 * time.Minute

// failing knows since when workloads have failed each time. After a restart the patience begins anew.
type failing struct {
	lock  sync.Mutex
	since map[types.NamespacedName]time.Time
}

// tooLong notes that a workload fails, and tells whether it has for longer than there is patience for.
func (f *failing) tooLong(workload types.NamespacedName, now time.Time) bool {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.since == nil {
		f.since = map[types.NamespacedName]time.Time{}
	}
	since, known := f.since[workload]
	if !known {
		f.since[workload] = now
		return false
	}
	return now.Sub(since) >= failingPatience
}

// forget notes that a workload does not fail.
func (f *failing) forget(workload types.NamespacedName) {
	f.lock.Lock()
	defer f.lock.Unlock()
	delete(f.since, workload)
}
