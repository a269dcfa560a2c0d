package deployments

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/ledger"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/replicas"
	"github.com/stayput/stayput/inplace/statuses"
	"github.com/stayput/stayput/inplace/steps"
)

// Where no pod may be unavailable, an update borrows: the target gets up to maxSurge replicas more, really created, and once they are
// available as many pods at a time as were borrowed are updated in place. Then the borrowed ones are given back. So a new version
// that does not work costs no old pod anything.
//
// How many replicas of a ReplicaSet are borrowed is noted on it by the patch that raises it: nothing else tells them from those that
// the user wants. Which pods they are is marked on the pods once they are there, for the others shall stay.

const (
	// NoSurge is noted on a target and says that nothing could be borrowed and the update goes on without.
	NoSurge = "0"
)

// MaySurge reports whether an update may borrow: no pod may be unavailable.
func (r Rollout) MaySurge() bool {
	d := r.Deployment
	return r.Settings.Surge && d.Rolls() && apps.Desired(d) > 0 && d.MaxUnavailable() == 0
}

// surging: it may, and it is not in vain.
func (v *Planner) surging() bool { return v.MaySurge() && !v.surgeGivenUp() && !v.noSurge() }

func (v *Planner) surgeGivenUp() bool {
	return v.NewRS != nil && v.NewRS.Rs.Labels[inplace.LabelSurgeReplicas] == NoSurge
}

// countSurge finds out how many replicas of each ReplicaSet are borrowed: what is noted, unless the native controller has lowered the sum
// since, or the user wants as many pods by now. Then those are pods like others; on the target first, where they are to be anyway. Pods that are marked
// come first: the note outlasts the pod that was given back, until the controller has seen that.
func (v *Planner) countSurge() {
	left := max(0, v.Total()-v.desired())
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

// excess is how many replicas there are more than the Deployment wants, borrowed ones aside; negative if too few.
func (v *Planner) excess() int { return v.Sum() - v.Surge() - v.desired() }

// noteSurge keeps the notes true and the pods marked.
func (v *Planner) noteSurge() {
	noRoomForSurge, _ := v.noRoomForSurge()
	for _, s := range v.Sets {
		switch {
		case s == v.NewRS && v.surgeGivenUp():
		case s.NotesExcessSurge() && !s.Seen(): // what was lowered may have been created in that moment
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

// noRoomForSurge reports whether the deadline passed before anything could be borrowed, or no node was found for it, and the user has not said outright
// that no pod may be unavailable; if it is only a matter of time, of how much.
func (v *Planner) noRoomForSurge() (bool, time.Duration) {
	switch {
	case !v.surging() || !replicas.AnyToRestart(v.Members) || apps.ExplicitZero(v.Deployment):
		return false, 0
	case statuses.Overdue(v.Deployment):
		return true, 0
	}
	return v.unplaceable()
}

// markSurgePods marks as many pods as are borrowed and have come. Among the pods that a controller created meanwhile nobody can tell
// the borrowed ones, and nobody needs to: all of them are younger than the update.
func (v *Planner) markSurgePods(s *replicas.Set) {
	marked := s.SurgePods()
	// Those for whom replicas were lowered already are still there; which of them, their controller decides. Of one too many it might choose the one
	// that serves again, which is held.
	for _, m := range marked[min(len(marked), s.Surge+s.Surplus()):] {
		v.Step(m.UnmarkSurge())
	}
	if !s.Seen() {
		return
	}
	young, unmarked := s.Youngest(), max(0, s.Surge-len(marked)-s.Missing())
	for _, m := range young[:min(len(young), unmarked)] {
		if !readiness.AwaitsGate(m.Pod) { // its gate comes first
			v.Step(m.MarkSurge())
		}
	}
}

// removeFirst gives back, in the place of a borrowed pod that may go, any that their controller deletes before it whatever their costs:
// it would try that one, which is held. And where the nodes are full that one may be waiting for the very place of the borrowed.
func (v *Planner) removeFirst(s *replicas.Set) {
	var going []*replicas.Pod
	for _, m := range s.Pods {
		if replicas.MayBeDeleted(m.Pod) {
			going = append(going, m)
		}
	}
	for _, m := range s.Pods {
		if !m.Removing && slices.ContainsFunc(going, m.Precedes) {
			v.Step(m.MarkForRemoval())
		}
	}
}

// unmarkedSurge: some pod is borrowed and nobody knows yet which. Until then it must not be moved as one of the others.
func (v *Planner) unmarkedSurge() bool {
	return slices.ContainsFunc(v.Sets, func(s *replicas.Set) bool {
		unmarked := s.Surge - len(s.SurgePods())
		if s == v.NewRS {
			unmarked -= s.Missing()
		}
		return unmarked > 0
	})
}

// surgeToAdd is what the update may have more and has use for.
func (v *Planner) surgeToAdd() int {
	if v.NewRS == nil || v.paused() || !v.surging() || v.provedNoRoom() || slices.ContainsFunc(v.Sets, (*replicas.Set).NotesExcessSurge) {
		return 0
	}
	return max(0, min(int(v.Deployment.MaxSurge()), v.needingSurge())-v.Surge())
}

// addSurge raises the target by that.
func (v *Planner) addSurge(more int) {
	v.Post(v.NewRS, more, ledger.CauseSurge)
	v.NewRS.Wanted.Surge = replicas.SurgeNote(v.NewRS.Surge + more)
	v.Phase(steps.PhaseScaling, "add surge pods")
}

// needingSurge counts the pods that serve and must restart, as far as the partition lets them.
func (v *Planner) needingSurge() int {
	needingSurge, partition := 0, v.partition
	for _, m := range v.Members {
		if m.ToRestart() && m.Ready() && partition.Take(&m.State) {
			needingSurge++
		}
	}
	return needingSurge
}

// neededSurge is how many borrowed pods of the ReplicaSet the update has use for. Those an edit has left on a source prove nothing about the
// target: unless it is known to work, they make room for others, and so do those of them that do not serve, by which nobody would ever have a turn.
// Borrowed pods are never moved themselves.
func (v *Planner) neededSurge(s *replicas.Set) int {
	if !v.surging() || !replicas.AnyToRestart(v.Members) || s == v.NewRS && v.provedNoRoom() || v.NewRS == nil {
		return 0
	}
	most := int(v.Deployment.MaxSurge())
	switch {
	case s == v.NewRS:
		return min(s.Surge, most)
	case v.NewRS.Available() == 0:
		return 0
	}
	return min(s.Surge, s.ReadySurge(), max(0, most-v.NewRS.Surge))
}

// surgeToRemove are the ReplicaSets with borrowed pods that are no longer of use, and how many of each. Who has begun to go, goes.
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

// removeSurge lowers replicas by those. Their controller must choose just them, so they are made the first to go; and they are drained, as one
// that restarts is.
func (v *Planner) removeSurge(due map[*replicas.Set]int, turns podstate.Turns) {
	budget := v.budget()
	for _, s := range v.Sets {
		left := due[s]
		v.lowerUncreated(s, &left)
		for _, m := range s.SurgePods()[:min(left, len(s.SurgePods()))] {
			switch {
			case m.Available && budget <= 0: // it serves until another does
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
		v.Result.Phase, v.Result.Message = steps.PhaseStalled, v.whyNoSurgePod()+"; pods restart one at a time"
	}
}

// giveUpSurge notes with the patch that gives the last borrowed replica back that nothing can be borrowed: the pods that showed it go.
func (v *Planner) giveUpSurge() {
	if v.ledger.Of(v.NewRS.Rs.Name).By() == -v.NewRS.Surge {
		v.NewRS.Wanted.Surge = NoSurge
	}
}

// anyRestarting, or is drained for it. That comes to its end before anything is given back: a pod without a gate, which nothing but its containers takes
// out of service, would be deleted in the place of the borrowed one.
func (v *Planner) anyRestarting(turns podstate.Turns) bool {
	return slices.ContainsFunc(v.Members, func(m *replicas.Pod) bool {
		return !m.Removing && (turns[&m.State] || !readiness.Gated(m.Pod) && !m.Applied)
	})
}

// lowerUncreated gives back what cannot be created. What just has not been yet comes first.
func (v *Planner) lowerUncreated(s *replicas.Set, left *int) {
	if !s.Failing() {
		return
	}
	gone := max(0, min(*left, s.Surge-len(s.SurgePods()), s.Missing()))
	v.Post(s, -gone, ledger.CauseSurgeRemoved)
	*left -= gone
}

// removeSurgePod takes a borrowed pod one step closer to its end.
func (v *Planner) removeSurgePod(m *replicas.Pod, turns podstate.Turns) {
	drain := v.drainState(m, turns)
	switch {
	case !m.Removing:
		v.Step(m.MarkForRemoval())
	case readiness.Gated(m.Pod) && !readiness.Closed(m.Pod):
		v.Step(podstate.CloseGate(m.Pod, v.Now, "it is a surge pod to remove"))
	case (drain.Over || !readiness.Gated(m.Pod)) && m.Owner.Missing() == 0:
		v.Phase(steps.PhaseScaling, "remove surge pods")
		v.Post(m.Owner, -1, ledger.CauseSurgeRemoved)
	default:
		v.Again(drain.Left)
	}
}

// anyRemoving: until that is over, nobody else has a turn who serves.
func (v *Planner) anyRemoving() bool {
	return slices.ContainsFunc(v.Sets, func(s *replicas.Set) bool { return s.Removals() > 0 })
}

// servesForOthers: who goes serves until another does, and that one may have to restart for it.
func (v *Planner) servesForOthers(budget int) bool {
	return budget <= 0 && slices.ContainsFunc(v.Members, func(m *replicas.Pod) bool { return m.Removing && m.Available })
}

func (v *Planner) provedNoRoom() bool {
	noRoomForSurge, _ := v.noRoomForSurge()
	return noRoomForSurge && v.whyNoSurgePod() != ""
}

// whyNoSurgePod says why no borrowed pod can be had; empty if one can. One that has a node but does not work is another matter: the new
// version may be broken.
func (v *Planner) whyNoSurgePod() string {
	if v.NewRS == nil || v.NewRS.Surge == 0 {
		return ""
	}
	why, absent := "", v.NewRS.Missing()
	for _, m := range v.NewRS.SurgePods() {
		if m.Pod.Spec.NodeName == "" {
			absent++
			why = conditions.ConditionMessage(m.Pod, corev1.PodScheduled)
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

// forgetSurge leaves nothing of a loan where the native controllers go on: what is too much is its surge.
func (v *Planner) forgetSurge() {
	v.clearSurgeNotes()
	for _, s := range v.Sets {
		for _, m := range s.SurgePods() {
			v.Step(m.UnmarkSurge())
		}
	}
}

func (v *Planner) clearSurgeNotes() {
	for _, s := range v.Sets {
		s.Wanted.Surge = ""
	}
}
