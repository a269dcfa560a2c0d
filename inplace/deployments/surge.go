package deployments

import (
	"slices"

	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// Where no pod may be unavailable, an update uses surge pods: the new ReplicaSet gets up to maxSurge replicas more, for which its
// controller creates pods. Once these are available, as many pods at a time are updated in place. Then the surge pods are removed. So a
// new version that does not work affects no old pod.
//
// The user may ask for surge pods also where some pods may be unavailable, and to have them stay (inplace.SurgeReplace): see replace.go.
//
// How many replicas of a ReplicaSet are for surge pods is noted on it by the patch that raises its replicas: nothing else tells them from
// the replicas that the user wants. Surge pods are marked once they exist, because the other pods must stay.

// surger decides how many surge pods come and go.
type surger struct {
	*observed
	pace   *engine.Pace
	ledger Ledger
}

// toAdd returns how many more surge replicas the update may add and needs.
func (r *surger) toAdd() int {
	maySurge := r.surge.used && !r.surge.provedNoRoom()
	if r.sets.New == nil || r.paused() || !maySurge || slices.ContainsFunc(r.sets.All, (*Set).NotesExcessSurge) {
		return 0
	}
	return max(0, min(r.maxSurge(), r.needing()-r.maxUnavailable())-r.sets.Surge())
}

// needing counts the pods that serve and must restart, as far as the partition budget allows.
func (r *surger) needing() int {
	needing, partition := 0, r.update.Partition
	for _, m := range r.sets.Pods {
		if m.ToRestart() && m.Ready() && partition.Take(&m.State) {
			needing++
		}
	}
	return needing
}

// needed returns how many surge pods of the ReplicaSet the update needs. Surge pods that an edit has left on an old ReplicaSet prove
// nothing about the update revision. Unless that is known to work, they are removed to make room for surge pods of the new ReplicaSet.
// Surge pods on an old ReplicaSet that do not serve are removed, too: with them, no pod would ever have its turn. Surge pods themselves
// are never moved.
func (r *surger) needed(s *Set) int {
	newRS := r.sets.New
	switch {
	case !r.surge.used || !r.anyToStart() || newRS == nil:
		return 0
	case s == newRS && r.surge.provedNoRoom():
		return 0
	case s == newRS:
		return min(s.Surge, r.maxSurge())
	case newRS.Available() == 0:
		return 0
	}
	serving := s.count(func(m *Pod) bool { return m.Surge && m.Ready() }) // even if not yet for minReadySeconds
	return min(s.Surge, serving, max(0, r.maxSurge()-newRS.Surge))
}

// anyToStart reports whether a surge pod lets a pod restart, now or later. Where no pod may be unavailable, surge pods serve until the last
// one has left its revision. Elsewhere they go when the last pod has its turn.
func (r *surger) anyToStart() bool {
	none := r.noneUnavailable()
	return slices.ContainsFunc(r.sets.Pods, func(m *Pod) bool { return m.ToRestart() && (none || !m.Turn) })
}

// toRemove returns the ReplicaSets with surge pods that are no longer needed, and how many each has. A removal that has begun goes on.
func (r *surger) toRemove() map[*Set]int {
	due := map[*Set]int{}
	for _, s := range r.sets.All {
		left := max(s.Surge-r.needed(s), min(s.Surge, s.count(func(m *Pod) bool { return m.Removing })))
		if s != r.sets.New {
			left = max(left, min(s.Surge-len(s.SurgePods()), s.Missing()))
		}
		if left > 0 {
			due[s] = left
		}
	}
	return due
}

// remove removes those surge pods. Their controller must choose exactly them when replicas are lowered, so they are made the first to be
// deleted. They are drained before, as pods that restart are. That goes for those, too, for which there are no replicas any more: their
// kubelets may have put them back, or a pod has moved to their ReplicaSet, and takes over a replica. Only those that are out of service may
// be deleted.
func (r *surger) remove(due map[*Set]int) {
	budget := r.budget().Available
	for _, s := range r.sets.All {
		left, spare := due[s]-r.lowerUncreated(s, due[s]), budget+max(0, s.Available()-s.Size()) // the budget does not count those
		for _, m := range s.SurgePods()[:min(left, len(s.SurgePods()))] {
			goes := s.Surplus() == 0 || m.Removing && m.Ready()
			if !goes || r.isAwaited(m, spare) || !r.pace.Passes(&m.State, engine.Remove) {
				continue
			}
			if m.Available {
				spare--
			}
			r.removePod(m)
		}
		budget = min(budget, spare)
	}
}

// isAwaited reports whether fewer pods than must would serve without this surge pod: it serves until another pod does. It also stays while
// it does not serve itself, if too few others do: it may serve again before they do. Surge pods of old ReplicaSets prove nothing then.
func (r *surger) isAwaited(m *Pod, budget int) bool {
	if m.Available {
		return budget <= 0
	}
	return budget < 0 && !m.Removing && m.Owner == r.sets.New && m.Pod.Spec.NodeName != ""
}

// lowerUncreated removes up to that many surge replicas whose pods cannot be created, and returns how many. Pods that are merely not
// created yet are awaited first.
func (r *surger) lowerUncreated(s *Set, most int) int {
	if !s.Failing() {
		return 0
	}
	gone := max(0, min(most, s.Surge-len(s.SurgePods()), s.Missing()))
	r.ledger.Post(s.Rs.Name, -gone, CauseSurgeRemoved)
	return gone
}

// removePod takes the next step to remove a surge pod.
func (r *surger) removePod(m *Pod) {
	plan := r.update.Plan
	switch {
	case !m.Removing:
		plan.Step(m.MarkForRemoval())
	case !readiness.Out(m.Pod):
		r.update.TakeOut(&m.State, "it is a surge pod to remove")
	case r.pace.Passes(&m.State, engine.Stop) && m.Owner.Missing() == 0:
		plan.Phase(steps.PhaseScaling, "remove surge pods")
		r.ledger.Post(m.Owner.Rs.Name, -1, CauseSurgeRemoved)
	}
}
