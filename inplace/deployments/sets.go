package deployments

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
)

// Sets are the ReplicaSets of a Deployment with their live pods.
type Sets struct {
	// All are oldest first. New is the new ReplicaSet; nil until it is created.
	All []*Set
	New *Set
	// Pods are those of all ReplicaSets, by name: an order that no event changes, but that a node is cordoned.
	Pods []*Pod
	// Wanted is how many pods the Deployment wants, and Kept how many of them the partition keeps.
	Wanted, Kept int
}

// SetsOf returns the ReplicaSets without pods: see Add.
func SetsOf(oldestFirst []*apps.ReplicaSet, newRS *apps.ReplicaSet, wanted, kept int) Sets {
	sets := Sets{Wanted: wanted, Kept: kept}
	for _, rs := range oldestFirst {
		s := &Set{Rs: rs}
		sets.All = append(sets.All, s)
		if rs == newRS {
			sets.New = s
		}
	}
	return sets
}

// Add adds a pod to its owner. Pods are added by name.
func (sets *Sets) Add(m *Pod) {
	m.Owner.Pods, sets.Pods = append(m.Owner.Pods, m), append(sets.Pods, m)
}

// Of returns the ReplicaSet that controls the pod; nil if none does.
func (sets Sets) Of(pod *corev1.Pod) *Set {
	for _, s := range sets.All {
		if metav1.IsControlledBy(pod, s.Rs) {
			return s
		}
	}
	return nil
}

// Old returns the ReplicaSets other than the new one.
func (sets Sets) Old() []*Set {
	return slices.DeleteFunc(slices.Clone(sets.All), func(s *Set) bool { return s == sets.New })
}

func (sets Sets) any(which func(*Set) bool) bool { return slices.ContainsFunc(sets.All, which) }

func (sets Sets) anyPod(which func(*Pod) bool) bool { return slices.ContainsFunc(sets.Pods, which) }

func (sets Sets) sum(of func(*Set) int) int {
	sum := 0
	for _, s := range sets.All {
		sum += of(s)
	}
	return sum
}

// Total returns the number of replicas that the ReplicaSet controller works towards, once pods that are moving are counted in the
// ReplicaSet where they are.
func (sets Sets) Total() int {
	return sets.sum(func(s *Set) int { return max(s.Size(), len(s.Pods)) })
}

// Surge returns how many replicas of all ReplicaSets are for surge pods.
func (sets Sets) Surge() int { return sets.sum(func(s *Set) int { return s.Surge }) }

// Excess returns how many replicas there are beyond those that the Deployment wants, not counting surge replicas; negative if there are
// too few.
func (sets Sets) Excess() int { return sets.sum((*Set).Size) - sets.Surge() - sets.Wanted }

// AllObserved reports whether the ReplicaSet controller has seen every pod where it is, and no ReplicaSet has surplus pods.
func (sets Sets) AllObserved() bool {
	return !sets.any(func(s *Set) bool { return s.InUse() && (s.Surplus() > 0 || !s.Seen()) })
}

// Overfull reports whether a mark holds the deletion of surplus pods.
func (sets Sets) Overfull() bool {
	return sets.any(func(s *Set) bool { return revisions.Updating(s.Rs) && s.Surplus() > 0 })
}

// AnyUpdating reports whether some ReplicaSet is marked as updating.
func (sets Sets) AnyUpdating() bool {
	return sets.any(func(s *Set) bool { return revisions.Updating(s.Rs) })
}

// AllUpdating reports whether all ReplicaSets that take part in the update are marked as updating.
func (sets Sets) AllUpdating() bool {
	return !sets.any(func(s *Set) bool { return sets.takesPart(s) && !revisions.Updating(s.Rs) })
}

func (sets Sets) takesPart(s *Set) bool { return s.InUse() || s == sets.New }

// OldInUse reports whether some old ReplicaSet has or wants pods.
func (sets Sets) OldInUse() bool {
	return sets.any(func(s *Set) bool { return s != sets.New && s.InUse() })
}

// Unfinished reports whether old ReplicaSets are in use, there are surge replicas, or some pod goes back to the new ReplicaSet's template.
func (sets Sets) Unfinished() bool {
	return sets.OldInUse() || sets.Surge() > 0 || sets.anyPod((*Pod).PartiallyPatched)
}

// Unproved reports whether some pod counts, or may count, as available for what it ran before. There are three such cases. A pod went back
// without a drain: it is Ready and has not restarted yet. Or it has just become unready, and its ReplicaSet's status still counts it. Or a
// pod has startup probes that are yet to run, because it has not restarted, or has only just (readiness.ProvedStarted): its kubelet may
// call it Ready before they run. If only time is needed, Unproved returns how long to wait. An unreachable kubelet calls no pod Ready.
func (sets Sets) Unproved(now time.Time) (unproved bool, wait time.Duration) {
	unproved = sets.any(func(s *Set) bool { return s.countsUnready(now) })
	for _, m := range sets.Pods {
		if probed := readiness.StartupProbed(m.Pod); !m.Unreachable && (probed || m.Ready()) {
			unproved, wait = unproved || !m.Applied || m.Unproved > 0, max(wait, m.Unproved)
		}
	}
	return unproved, wait
}

// Books returns the accounts of the ReplicaSets, for the ledger. Leaving are the pods that move to the new ReplicaSet now.
func (sets Sets) Books(maxSurge int, leaving map[*Set][]*Pod) Books {
	books := Books{Wanted: sets.Wanted, MaxSurge: maxSurge}
	for _, s := range sets.All {
		books.Accounts = append(books.Accounts, Account{Name: s.Rs.Name, Replicas: s.Size(), Pods: len(s.Pods),
			Leaving: len(leaving[s]), Ending: s.Ending(), Surge: s.Surge, ToReplace: s.ToReplace()})
	}
	return books
}

// IsCurrent reports whether pods had the ReplicaSet when the update began. If that is not noted for any ReplicaSet, because a write was
// lost, it reports true: then too few pods move rather than too many.
func (sets Sets) IsCurrent(s *Set) bool {
	noted := func(s *Set) bool {
		return revisions.IsCurrent(s.Rs.Labels[inplace.LabelCurrent], s.Rs.Labels[inplace.LabelUpdating])
	}
	return noted(s) || !sets.any(noted)
}

// BeyondPartition returns how many replicas of the old ReplicaSets exceed the pods that the partition keeps there; negative if the
// partition would keep more.
func (sets Sets) BeyondPartition() int {
	beyond := -sets.Kept
	for _, s := range sets.Old() {
		if sets.IsCurrent(s) {
			beyond += s.Size()
		}
	}
	return beyond
}

// LargestCurrent returns the old ReplicaSet with the most replicas that pods had when the update began; nil if none is in use.
func (sets Sets) LargestCurrent() *Set {
	return largest(slices.DeleteFunc(sets.Old(), func(s *Set) bool { return !s.InUse() || !sets.IsCurrent(s) }), (*Set).Size)
}

// largest returns the first of the ReplicaSets that are the largest by that measure; nil if there are none.
func largest(sets []*Set, size func(*Set) int) *Set {
	if len(sets) == 0 {
		return nil
	}
	return slices.MaxFunc(sets, func(a, b *Set) int { return size(a) - size(b) })
}
