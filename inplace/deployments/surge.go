package deployments

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/replicas"
	"github.com/stayput/stayput/inplace/statuses"
	"github.com/stayput/stayput/inplace/steps"
)

// Where no pod may be unavailable, an update uses surge pods: the new ReplicaSet gets up to maxSurge replicas more, for which its
// controller creates pods. Once these are available, as many pods at a time are updated in place. Then the surge pods are removed. So a
// new version that does not work affects no old pod.
//
// How many replicas of a ReplicaSet are for surge pods is noted on it by the patch that raises its replicas: nothing else tells them from
// the replicas that the user wants. Surge pods are marked once they exist, because the other pods must stay.

const (
	// NoSurge is noted on the new ReplicaSet and says that there was no room for surge pods, and that the update goes on without them.
	NoSurge = "0"
)

// MaySurge reports whether an update may use surge pods: no pod may be unavailable.
func (r Rollout) MaySurge() bool {
	d := r.Deployment
	return r.Seen.Settings.Surge && d.Rolls() && apps.Desired(d) > 0 && d.MaxUnavailable() == 0
}

// surging reports whether the update uses surge pods: it may, and there may be room for them.
func (v *Planner) surging() bool { return v.rollout.MaySurge() && !v.surgeGivenUp() && !v.noSurge() }

func (v *Planner) surgeGivenUp() bool {
	return v.NewRS != nil && v.NewRS.Rs.Labels[inplace.LabelSurgeReplicas] == NoSurge
}

// countSurge counts the surge replicas of each ReplicaSet. They are those that are noted, unless the native controller has lowered the
// sum since, or the user now wants as many pods. Then surge pods become ordinary pods; those of the new ReplicaSet first, where pods are
// to be anyway. Marked pods count first: the note outlasts a surge pod that was removed, until the controller has seen the removal.
func (v *Planner) countSurge() {
	left := max(0, v.Sets.Total()-v.desired())
	take := func(s *replicas.Set, most int) {
		more := min(left, max(0, min(s.NotedSurge(), s.SurgeAtMost(), most)-s.Surge))
		s.Surge, left = s.Surge+more, left-more
	}
	sets := slices.DeleteFunc(slices.Clone(v.Sets), func(s *replicas.Set) bool { return s == v.NewRS })
	if v.NewRS != nil {
		sets = append(sets, v.NewRS)
	}
	for _, s := range sets {
		take(s, len(s.SurgePods()))
	}
	for _, s := range sets {
		take(s, s.NotedSurge())
	}
}

// excess returns how many replicas there are beyond those that the Deployment wants, not counting surge replicas; negative if there are
// too few.
func (v *Planner) excess() int { return v.Sets.Sum() - v.Sets.Surge() - v.desired() }

// noteSurge keeps the notes on ReplicaSets and the marks on surge pods up to date.
func (v *Planner) noteSurge() {
	noRoomForSurge, _ := v.noRoomForSurge()
	for _, s := range v.Sets {
		switch {
		case s == v.NewRS && v.surgeGivenUp():
		case s.NotesExcessSurge() && !s.Seen(): // the controller may just have created a pod for a replica that was removed
			s.Wanted.Surge = replicas.SurgeNote(s.NotedSurge())
		case s == v.NewRS && s.NotesExcessSurge() && s.Surge == 0 && noRoomForSurge:
			s.Wanted.Surge = NoSurge
		default:
			s.Wanted.Surge = replicas.SurgeNote(s.Surge)
		}
		v.markSurgePods(s)
		v.removeFirst(s)
	}
}

// noRoomForSurge reports whether the deadline has passed before there were surge pods, or no node was found for them. It is false where
// the user has set maxUnavailable to 0 explicitly. If it is only a matter of time, it returns how long that takes.
func (v *Planner) noRoomForSurge() (bool, time.Duration) {
	switch {
	case !v.surging() || !replicas.AnyToRestart(v.Members) || apps.ExplicitZero(v.deployment):
		return false, 0
	case statuses.Overdue(v.deployment):
		return true, 0
	}
	return v.unplaceable()
}

// markSurgePods marks as many pods as there are surge replicas with pods. Stayput cannot tell surge pods from the other pods that the
// controller created meanwhile, and need not: all of them are younger than the update.
func (v *Planner) markSurgePods(s *replicas.Set) {
	marked := s.SurgePods()
	// Surge pods whose replicas were removed already may still exist; their controller decides which of the marked pods it deletes. If one
	// too many were marked, it might choose the one that serves again, whose deletion is held.
	for _, m := range marked[min(len(marked), s.Surge+s.Surplus()):] {
		v.plan.Step(m.UnmarkSurge())
	}
	if !s.Seen() {
		return
	}
	young, unmarked := s.Youngest(), max(0, s.Surge-len(marked)-s.Missing())
	for _, m := range young[:min(len(young), unmarked)] {
		if !readiness.AwaitsGate(m.Pod) { // its gate is opened first
			v.plan.Step(m.MarkSurge())
		}
	}
}

// removeFirst removes, in place of a surge pod that may go, any pod that their controller deletes before it whatever the deletion costs
// are. The controller would try to delete that pod, which is held. And where the nodes are full, that pod may be waiting for the very
// room that the surge pod takes.
func (v *Planner) removeFirst(s *replicas.Set) {
	var going []*replicas.Pod
	for _, m := range s.Pods {
		if replicas.MayBeDeleted(m.Pod) {
			going = append(going, m)
		}
	}
	for _, m := range s.Pods {
		if !m.Removing && slices.ContainsFunc(going, m.Precedes) {
			v.plan.Step(m.MarkForRemoval())
		}
	}
}

// unmarkedSurge reports whether there is a surge pod that is not marked yet. Until it is, it must not be moved like the other pods.
func (v *Planner) unmarkedSurge() bool {
	return slices.ContainsFunc(v.Sets, func(s *replicas.Set) bool {
		unmarked := s.Surge - len(s.SurgePods())
		if s == v.NewRS {
			unmarked -= s.Missing()
		}
		return unmarked > 0
	})
}

// surgeToAdd returns how many more surge replicas the update may add and needs.
func (v *Planner) surgeToAdd() int {
	if v.NewRS == nil || v.paused() || !v.surging() || v.provedNoRoom() || slices.ContainsFunc(v.Sets, (*replicas.Set).NotesExcessSurge) {
		return 0
	}
	return max(0, min(int(v.deployment.MaxSurge()), v.needingSurge())-v.Sets.Surge())
}

// addSurge adds that many replicas to the new ReplicaSet.
func (v *Planner) addSurge(more int) {
	v.Post(v.NewRS, more, replicas.CauseSurge)
	v.NewRS.Wanted.Surge = replicas.SurgeNote(v.NewRS.Surge + more)
	v.plan.Phase(steps.PhaseScaling, "add surge pods")
}

// needingSurge counts the pods that serve and must restart, as far as the partition budget allows.
func (v *Planner) needingSurge() int {
	needingSurge, partition := 0, v.update.Partition
	for _, m := range v.Members {
		if m.ToRestart() && m.Ready() && partition.Take(&m.State) {
			needingSurge++
		}
	}
	return needingSurge
}

// neededSurge returns how many surge pods of the ReplicaSet the update needs. Surge pods that an edit has left on an old ReplicaSet prove
// nothing about the update revision. Unless that is known to work, they are removed to make room for surge pods of the new ReplicaSet.
// Surge pods on an old ReplicaSet that do not serve are removed, too: with them, no pod would ever have its turn. Surge pods themselves
// are never moved.
func (v *Planner) neededSurge(s *replicas.Set) int {
	if !v.surging() || !replicas.AnyToRestart(v.Members) || s == v.NewRS && v.provedNoRoom() || v.NewRS == nil {
		return 0
	}
	most := int(v.deployment.MaxSurge())
	switch {
	case s == v.NewRS:
		return min(s.Surge, most)
	case v.NewRS.Available() == 0:
		return 0
	}
	return min(s.Surge, s.ReadySurge(), max(0, most-v.NewRS.Surge))
}

// surgeToRemove returns the ReplicaSets with surge pods that are no longer needed, and how many each has. A removal that has begun goes
// on.
func (v *Planner) surgeToRemove(turns podstate.Turns) map[*replicas.Set]int {
	due := map[*replicas.Set]int{}
	if v.anyRestarting(turns) {
		return due
	}
	for _, s := range v.Sets {
		left := max(s.Surge-v.neededSurge(s), min(s.Surge, s.Removals()))
		if s != v.NewRS {
			left = max(left, min(s.Surge-len(s.SurgePods()), s.Missing()))
		}
		if left > 0 {
			due[s] = left
		}
	}
	return due
}

// removeSurge removes those surge pods. Their controller must choose exactly them when replicas are lowered, so they are made the first
// to be deleted. They are drained first, as pods that restart are.
func (v *Planner) removeSurge(due map[*replicas.Set]int, turns podstate.Turns) {
	budget := v.budget()
	for _, s := range v.Sets {
		left := due[s]
		v.lowerUncreated(s, &left)
		for _, m := range s.SurgePods()[:min(left, len(s.SurgePods()))] {
			switch {
			case v.deletedFirst(m) != nil: // it serves until that pod does
			case m.Available && budget <= 0: // it serves until another pod does
			case m.Available:
				budget--
				v.removeSurgePod(m, turns)
			default:
				v.removeSurgePod(m, turns)
			}
		}
	}
	if v.provedNoRoom() {
		v.giveUpSurge()
		v.plan.Result.Phase, v.plan.Result.Message = steps.PhaseStalled, v.whyNoSurgePod()+"; pods restart one at a time"
	}
}

// deletedFirst returns a pod that would be deleted in place of the surge pod, because it starts again while the surge pod serves; nil if
// none would. A surge pod with a gate is not Ready by the time it is deleted.
func (v *Planner) deletedFirst(surge *replicas.Pod) *replicas.Pod {
	if surge.Removing || !surge.Ready() || readiness.Gated(surge.Pod) {
		return nil
	}
	at := slices.IndexFunc(surge.Owner.Pods, func(m *replicas.Pod) bool {
		starts := !m.Ready() && m.Pod.Spec.NodeName != "" && m.Pod.Status.Phase != corev1.PodPending
		return starts && !m.Surge && !m.Removing
	})
	if at < 0 {
		return nil
	}
	return surge.Owner.Pods[at]
}

// giveUpSurge notes that there is no room for surge pods, with the patch that removes the last surge replica: the pods that show it are
// deleted then.
func (v *Planner) giveUpSurge() {
	if v.ledger.Of(v.NewRS.Rs.Name).By() == -v.NewRS.Surge {
		v.NewRS.Wanted.Surge = NoSurge
	}
}

// anyRestarting reports whether a pod restarts, or is being drained for a restart. That ends before a surge pod is removed: a pod without
// a gate, which is out of service only while its containers restart, would be deleted in place of the surge pod.
func (v *Planner) anyRestarting(turns podstate.Turns) bool {
	return slices.ContainsFunc(v.Members, func(m *replicas.Pod) bool {
		return !m.Removing && (turns[&m.State] || !readiness.Gated(m.Pod) && !m.Applied)
	})
}

// lowerUncreated removes the surge replicas whose pods cannot be created. Pods that are merely not created yet are awaited first.
func (v *Planner) lowerUncreated(s *replicas.Set, left *int) {
	if !s.Failing() {
		return
	}
	gone := max(0, min(*left, s.Surge-len(s.SurgePods()), s.Missing()))
	v.Post(s, -gone, replicas.CauseSurgeRemoved)
	*left -= gone
}

// removeSurgePod takes the next step to remove a surge pod.
func (v *Planner) removeSurgePod(m *replicas.Pod, turns podstate.Turns) {
	drain := v.update.DrainState(&m.State, turns)
	switch {
	case !m.Removing:
		v.plan.Step(m.MarkForRemoval())
	case readiness.Gated(m.Pod) && !readiness.Closed(m.Pod):
		v.plan.Step(podstate.CloseGate(m.Pod, v.seen.Now, "it is a surge pod to remove"))
	case (drain.Over || !readiness.Gated(m.Pod)) && m.Owner.Missing() == 0:
		v.plan.Phase(steps.PhaseScaling, "remove surge pods")
		v.Post(m.Owner, -1, replicas.CauseSurgeRemoved)
	default:
		v.plan.Again(drain.Left)
	}
}

// anyRemoving reports whether a surge pod is being removed. Until that is over, no other pod that serves has its turn.
func (v *Planner) anyRemoving() bool {
	return slices.ContainsFunc(v.Sets, func(s *replicas.Set) bool { return s.Removals() > 0 })
}

// servesForOthers reports whether a surge pod that is to be removed serves until another pod does. That other pod may have to restart to
// serve.
func (v *Planner) servesForOthers(budget int) bool {
	return budget <= 0 && slices.ContainsFunc(v.Members, func(m *replicas.Pod) bool { return m.Removing && m.Available })
}

// provedNoRoom reports whether there is no room for surge pods and whyNoSurgePod says why.
func (v *Planner) provedNoRoom() bool {
	noRoomForSurge, _ := v.noRoomForSurge()
	return noRoomForSurge && v.whyNoSurgePod() != ""
}

// whyNoSurgePod returns why there can be no surge pod; empty if there can be one. A surge pod that has a node but does not work is
// another matter: the new version may be broken.
func (v *Planner) whyNoSurgePod() string {
	if v.NewRS == nil || v.NewRS.Surge == 0 {
		return ""
	}
	why, absent := "", v.NewRS.Missing()
	for _, m := range v.NewRS.SurgePods() {
		if m.Pod.Spec.NodeName == "" {
			absent++
			why = apps.ConditionMessage(m.Pod, corev1.PodScheduled)
		}
	}
	if absent < v.NewRS.Surge {
		return ""
	}
	if failure := v.formula().ReplicaFailure(); failure != nil {
		why = cmp.Or(why, failure.Message)
	}
	return strings.TrimSuffix("no room for surge pods: "+why, ": ")
}

// forgetSurge removes all notes and marks of surge pods where the native controllers go on: for them, pods beyond the replicas are their
// own surge.
func (v *Planner) forgetSurge() {
	v.clearSurgeNotes()
	for _, s := range v.Sets {
		for _, m := range s.SurgePods() {
			v.plan.Step(m.UnmarkSurge())
		}
	}
}

func (v *Planner) clearSurgeNotes() {
	for _, s := range v.Sets {
		s.Wanted.Surge = ""
	}
}
