package replicas

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace/ledger"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
)

// Sets are the ReplicaSets of a Deployment, oldest first.
type Sets []*Set

// Sum is what all controllers together work towards.
func (all Sets) Sum() int {
	sum := 0
	for _, s := range all {
		sum += s.Size()
	}
	return sum
}

// Total is the sum once the pods that are just moving are counted where they are.
func (all Sets) Total() int {
	total := 0
	for _, s := range all {
		total += max(s.Size(), len(s.Pods))
	}
	return total
}

// Still reports whether every controller has seen every pod where it is, and none has one too many.
func (all Sets) Still() bool {
	return !slices.ContainsFunc(all, func(s *Set) bool { return s.InUse() && (s.Surplus() > 0 || !s.Seen()) })
}

// Overfull reports whether a mark keeps pods that are too many from being deleted.
func (all Sets) Overfull() bool {
	return slices.ContainsFunc(all, func(s *Set) bool { return revisions.Updating(s.Rs) && s.Surplus() > 0 })
}

// Unmark takes the mark off all of them.
func (all Sets) Unmark() {
	for _, s := range all {
		s.Wanted.Updating = ""
	}
}

// Unproved reports whether some pod counts as available for what it ran before, or may: it has not restarted yet and is Ready, since it went back
// without a drain; or its startup probes have yet to have their turn, as it has not restarted or only just has (readiness.ProvedStarted), and its
// kubelet may call it Ready before. If that is only a matter of time, of how much. Who is not heard of calls nothing Ready.
func (all Sets) Unproved(now time.Time) (unproved bool, wait time.Duration) {
	for _, s := range all {
		for _, m := range s.Pods {
			if probed := readiness.StartupProbed(m.Pod); !m.Unreachable && (probed || m.Ready()) {
				proved, left := readiness.ProvedStarted(m.Pod, now)
				unproved, wait = unproved || !proved || !m.Applied, max(wait, left)
			}
		}
	}
	return unproved, wait
}

// AnyUpdating reports whether some ReplicaSet is marked.
func (all Sets) AnyUpdating() bool {
	return slices.ContainsFunc(all, func(s *Set) bool { return revisions.Updating(s.Rs) })
}

// Surge is how many replicas are borrowed in all.
func (all Sets) Surge() int {
	surge := 0
	for _, s := range all {
		surge += s.Surge
	}
	return surge
}

// AllUpdating reports whether all that take part are marked.
func (all Sets) AllUpdating(newRS *Set) bool {
	return !slices.ContainsFunc(all, func(s *Set) bool { return (s.InUse() || s == newRS) && !revisions.Updating(s.Rs) })
}

// OnlyActive reports whether that one will have replicas, and no other.
func (all Sets) OnlyActive(only *Set, balance ledger.Balance) bool {
	return !slices.ContainsFunc(all, func(s *Set) bool { return (s.Becomes(balance) > 0) != (s == only) })
}

// Of is the ReplicaSet that controls the pod; nil if none does.
func (all Sets) Of(pod *corev1.Pod) *Set {
	controller := metav1.GetControllerOfNoCopy(pod)
	if controller == nil {
		return nil
	}
	for _, s := range all {
		if s.Rs.UID == controller.UID {
			return s
		}
	}
	return nil
}
