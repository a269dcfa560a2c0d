package replicas

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
)

// Sets are the ReplicaSets of a Deployment, oldest first.
type Sets []*Set

// Sum returns the number of replicas that the ReplicaSet controller works towards, over all ReplicaSets.
func (all Sets) Sum() int {
	sum := 0
	for _, s := range all {
		sum += s.Size()
	}
	return sum
}

// Total returns that sum as it is once pods that are moving are counted in the ReplicaSet where they are.
func (all Sets) Total() int {
	total := 0
	for _, s := range all {
		total += max(s.Size(), len(s.Pods))
	}
	return total
}

// AllObserved reports whether the ReplicaSet controller has seen every pod where it is, and no ReplicaSet has surplus pods.
func (all Sets) AllObserved() bool {
	return !slices.ContainsFunc(all, func(s *Set) bool { return s.InUse() && (s.Surplus() > 0 || !s.Seen()) })
}

// Overfull reports whether a mark holds the deletion of surplus pods.
func (all Sets) Overfull() bool {
	return slices.ContainsFunc(all, func(s *Set) bool { return revisions.Updating(s.Rs) && s.Surplus() > 0 })
}

// Unmark removes the updating mark from all ReplicaSets.
func (all Sets) Unmark() {
	for _, s := range all {
		s.Wanted.Updating = ""
	}
}

// Unproved reports whether some pod counts, or may count, as available for what it ran before. There are two such cases. A pod went back
// without a drain: it is Ready and has not restarted yet. Or a pod has startup probes that are yet to run, because it has not restarted, or
// has only just (readiness.ProvedStarted): its kubelet may call it Ready before they run. If only time is needed, Unproved returns how long
// to wait. An unreachable kubelet calls no pod Ready.
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

// AnyUpdating reports whether some ReplicaSet is marked as updating.
func (all Sets) AnyUpdating() bool {
	return slices.ContainsFunc(all, func(s *Set) bool { return revisions.Updating(s.Rs) })
}

// Surge returns how many replicas of all ReplicaSets are for surge pods.
func (all Sets) Surge() int {
	surge := 0
	for _, s := range all {
		surge += s.Surge
	}
	return surge
}

// AllUpdating reports whether all ReplicaSets that take part in the update are marked as updating.
func (all Sets) AllUpdating(newRS *Set) bool {
	return !slices.ContainsFunc(all, func(s *Set) bool { return (s.InUse() || s == newRS) && !revisions.Updating(s.Rs) })
}

// OnlyActive reports whether this ReplicaSet will have replicas and all others will have none.
func (all Sets) OnlyActive(only *Set, balance Balance) bool {
	return !slices.ContainsFunc(all, func(s *Set) bool { return (s.Becomes(balance) > 0) != (s == only) })
}

// Of returns the ReplicaSet that controls the pod; nil if none does.
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
