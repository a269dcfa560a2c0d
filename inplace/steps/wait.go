package steps

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The filters of which users are told by events, phases or metrics. Their names are those of the phases, too.
const (
	FilterImages = "Images"
	FilterHooks  = "Hooks"
	FilterBudget = "Budget"
	FilterLimit  = "Limit"
)

// Wait is why a pod does not go on now.
type Wait struct {
	// Filter is the name of what keeps the pod.
	Filter string
	Pod    *corev1.Pod
	// For is what exactly that is, if there are several: a PodDisruptionBudget, a flag, or annotations.
	For string
	// Why is what the pod waits for, one clause; empty for its turn.
	Why string
	// Again is when to look again although nothing changes; 0 for never.
	Again time.Duration
	// Shared: pods of other workloads count as well.
	Shared bool
	// Excused: the progress deadline does not run while no pod is in progress.
	Excused bool
}

// String returns one clause. It stays the same as long as the pod waits for the same.
func (w Wait) String() string { return "waiting for " + w.Why }

// Wait notes why a pod does not go on now. What pods wait for that nothing but their turn keeps is not told.
func (d *PlanBuilder) Wait(w Wait) {
	d.Again(w.Again)
	if w.Why != "" {
		d.Result.Waits = append(d.Result.Waits, w)
	}
}

// Awaits returns what the pods wait for that came first, one clause; empty if for nothing.
func (d *PlanBuilder) Awaits() string {
	if len(d.Result.Waits) == 0 {
		return ""
	}
	return d.Result.Waits[0].String()
}

// MayStart notes how many more pods the workload itself would let restart: no more of them wait for a limit.
func (d *PlanBuilder) MayStart(most int) {
	d.Result.Waits = slices.DeleteFunc(d.Result.Waits, func(w Wait) bool {
		if w.Filter != FilterLimit {
			return false
		}
		most--
		return most < 0
	})
}

// WaitsFor returns the waits of a filter.
func (p Plan) WaitsFor(filter string) []Wait {
	return slices.DeleteFunc(slices.Clone(p.Waits), func(w Wait) bool { return w.Filter != filter })
}
