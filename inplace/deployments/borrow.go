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
	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/replicas"
	"github.com/stayput/stayput/inplace/statuses"
	"github.com/stayput/stayput/inplace/steps"
)

// Where no pod may be missed, an update borrows: the target gets up to maxSurge replicas more, really created, and once they are
// available as many pods at a time as were borrowed are updated in place. Then the borrowed ones are given back. So a new version
// that does not work costs no old pod anything.
//
// How many replicas of a ReplicaSet are borrowed is noted on it by the patch that raises it: nothing else tells them from those that
// the user wants. Which pods they are is marked on the pods once they are there, for the others shall stay.

const (
	// Unobtainable is noted on a target and says that nothing could be borrowed and the update goes on without.
	Unobtainable = "0"
)

// Borrows tells whether an update may borrow: no pod may be missed.
func (r Rollout) Borrows() bool {
	d := r.Deployment
	return r.Settings.Borrow && d.Rolls() && apps.Desired(d) > 0 && d.MaxUnavailable() == 0
}

// borrowing: it may, and it is not in vain.
func (v *View) borrowing() bool { return v.Borrows() && !v.notedInVain() && !v.alone() }

func (v *View) notedInVain() bool {
	return v.Target != nil && v.Target.Rs.Labels[inplace.LabelBorrowed] == Unobtainable
}

// loans finds out how many replicas of each ReplicaSet are borrowed: what is noted, unless the native controller has lowered the sum
// since, or the user wants as many pods by now. Then those are pods like others; on the target first, where they are to be anyway. Pods that are marked
// come first: the note outlasts the pod that was given back, until the controller has seen that.
func (v *View) loans() {
	left := max(0, v.Total()-v.desired())
	take := func(s *replicas.Set, most int) {
		more := min(left, max(0, min(s.Noted(), s.Lendable(), most)-s.Loan))
		s.Loan, left = s.Loan+more, left-more
	}
	sets := slices.DeleteFunc(slices.Clone(v.Sets), func(s *replicas.Set) bool { return s == v.Target })
	if v.Target != nil {
		sets = append(sets, v.Target)
	}
	for _, s := range sets {
		take(s, len(s.Borrowed()))
	}
	for _, s := range sets {
		take(s, s.Noted())
	}
}

// excess is how many replicas there are more than the Deployment wants, borrowed ones aside; negative if too few.
func (v *View) excess() int { return v.Sum() - v.Loan() - v.desired() }

// account keeps the notes true and the pods marked.
func (v *View) account() {
	inVain, _ := v.inVain()
	for _, s := range v.Sets {
		switch {
		case s == v.Target && v.notedInVain():
		case s.OverNoted() && !s.Seen(): // what was lowered may have been created in that moment
			s.Wish.Borrowed = replicas.Note(s.Noted())
		case s == v.Target && s.OverNoted() && s.Loan == 0 && inVain:
			s.Wish.Borrowed = Unobtainable
		default:
			s.Wish.Borrowed = replicas.Note(s.Loan)
		}
		v.lendPods(s)
		v.giveBackFirst(s)
	}
}

// inVain tells whether the deadline passed before anything could be borrowed, or no node was found for it, and the user has not said outright
// that no pod may be missed; if it is only a matter of time, of how much.
func (v *View) inVain() (bool, time.Duration) {
	switch {
	case !v.borrowing() || !replicas.AnyToRestart(v.Members) || apps.ExplicitZero(v.Deployment):
		return false, 0
	case statuses.Overdue(v.Deployment):
		return true, 0
	}
	return v.unplaceable()
}

// lendPods marks as many pods as are borrowed and have come. Among the pods that a controller created meanwhile nobody can tell
// the borrowed ones, and nobody needs to: all of them are younger than the update.
func (v *View) lendPods(s *replicas.Set) {
	marked := s.Borrowed()
	// Those for whom replicas were lowered already are still there; which of them, their controller decides. Of one too many it might choose the one
	// that serves again, which is held.
	for _, m := range marked[min(len(marked), s.Loan+s.Surplus()):] {
		v.Step(m.Stay())
	}
	if !s.Seen() {
		return
	}
	young, unmarked := s.Youngest(), max(0, s.Loan-len(marked)-s.Missing())
	for _, m := range young[:min(len(young), unmarked)] {
		if !readiness.AwaitsGate(m.Pod) { // its gate comes first
			v.Step(m.Lend())
		}
	}
}

// giveBackFirst gives back, in the place of a borrowed pod that may go, any that their controller deletes before it whatever their costs:
// it would try that one, which is held. And where the nodes are full that one may be waiting for the very place of the borrowed.
func (v *View) giveBackFirst(s *replicas.Set) {
	var going []*replicas.Member
	for _, m := range s.Pods {
		if replicas.MayGo(m.Pod) {
			going = append(going, m)
		}
	}
	for _, m := range s.Pods {
		if !m.Goes && slices.ContainsFunc(going, m.Precedes) {
			v.Step(m.Dismissed())
		}
	}
}

// unlent: some pod is borrowed and nobody knows yet which. Until then it must not be moved as one of the others.
func (v *View) unlent() bool {
	return slices.ContainsFunc(v.Sets, func(s *replicas.Set) bool {
		unmarked := s.Loan - len(s.Borrowed())
		if s == v.Target {
			unmarked -= s.Missing()
		}
		return unmarked > 0
	})
}

// borrowable is what the update may have more and has use for.
func (v *View) borrowable() int {
	if v.Target == nil || v.paused() || !v.borrowing() || v.provedInVain() || slices.ContainsFunc(v.Sets, (*replicas.Set).OverNoted) {
		return 0
	}
	return max(0, min(int(v.Deployment.MaxSurge()), v.needy())-v.Loan())
}

// borrow raises the target by that.
func (v *View) borrow(more int) {
	v.Post(v.Target, more, ledger.CauseBorrowed)
	v.Target.Wish.Borrowed = replicas.Note(v.Target.Loan + more)
	v.Phase(steps.PhaseScaling, "borrow pods")
}

// needy counts the pods that serve and must restart, as far as the partition lets them.
func (v *View) needy() int {
	needy, room := 0, v.room
	for _, m := range v.Members {
		if m.ToRestart() && m.Ready() && room.Take(&m.State) {
			needy++
		}
	}
	return needy
}

// kept is how many borrowed pods of the ReplicaSet the update has use for. Those an edit has left on a source prove nothing about the
// target: unless it is known to work, they make room for others, and so do those of them that do not serve, by which nobody would ever have a turn.
// Borrowed pods are never moved themselves.
func (v *View) kept(s *replicas.Set) int {
	if !v.borrowing() || !replicas.AnyToRestart(v.Members) || s == v.Target && v.provedInVain() || v.Target == nil {
		return 0
	}
	most := int(v.Deployment.MaxSurge())
	switch {
	case s == v.Target:
		return min(s.Loan, most)
	case v.Target.Available() == 0:
		return 0
	}
	return min(s.Loan, s.Lending(), max(0, most-v.Target.Loan))
}

// due are the ReplicaSets with borrowed pods that are no longer of use, and how many of each. Who has begun to go, goes.
func (v *View) due(turns member.Turns) map[*replicas.Set]int {
	due := map[*replicas.Set]int{}
	if v.someoneRestarts(turns) {
		return due
	}
	for _, s := range v.Sets {
		left := max(s.Loan-v.kept(s), min(s.Loan, s.Going()))
		if s != v.Target {
			left = max(left, min(s.Loan-len(s.Borrowed()), s.Missing()))
		}
		if left > 0 {
			due[s] = left
		}
	}
	return due
}

// giveBack lowers replicas by those. Their controller must choose just them, so they are made the first to go; and they are drained, as one
// that restarts is.
func (v *View) giveBack(due map[*replicas.Set]int, turns member.Turns) {
	budget := v.budget()
	for _, s := range v.Sets {
		left := due[s]
		v.lowerMissing(s, &left)
		for _, m := range s.Borrowed()[:min(left, len(s.Borrowed()))] {
			switch {
			case m.Available && budget <= 0: // it serves until another does
			case m.Available:
				budget--
				v.dismiss(m, turns)
			default:
				v.dismiss(m, turns)
			}
		}
	}
	if v.provedInVain() {
		v.noteInVain()
		v.Result.Phase, v.Result.Message = steps.PhaseStalled, v.lack()+"; pods restart one at a time"
	}
}

// noteInVain notes with the patch that gives the last borrowed replica back that nothing can be borrowed: the pods that showed it go.
func (v *View) noteInVain() {
	if v.ledger.Of(v.Target.Rs.Name).By() == -v.Target.Loan {
		v.Target.Wish.Borrowed = Unobtainable
	}
}

// someoneRestarts, or is drained for it. That comes to its end before anything is given back: a pod without a gate, which nothing but its containers takes
// out of service, would be deleted in the place of the borrowed one.
func (v *View) someoneRestarts(turns member.Turns) bool {
	return slices.ContainsFunc(v.Members, func(m *replicas.Member) bool {
		return !m.Goes && (turns[&m.State] || !readiness.Gated(m.Pod) && !m.Arrived)
	})
}

// lowerMissing gives back what cannot be created. What just has not been yet comes first.
func (v *View) lowerMissing(s *replicas.Set, left *int) {
	if !s.Failing() {
		return
	}
	gone := max(0, min(*left, s.Loan-len(s.Borrowed()), s.Missing()))
	v.Post(s, -gone, ledger.CauseGivenBack)
	*left -= gone
}

// dismiss takes a borrowed pod one step closer to its end.
func (v *View) dismiss(m *replicas.Member, turns member.Turns) {
	drain := v.drainage(m, turns)
	switch {
	case !m.Goes:
		v.Step(m.Dismissed())
	case readiness.Gated(m.Pod) && !readiness.Closed(m.Pod):
		v.Step(member.CloseGate(m.Pod, v.Now, "it is given back"))
	case (drain.Over || !readiness.Gated(m.Pod)) && m.Owner.Missing() == 0:
		v.Phase(steps.PhaseScaling, "give borrowed pods back")
		v.Post(m.Owner, -1, ledger.CauseGivenBack)
	default:
		v.Again(drain.Left)
	}
}

// someoneGoes: until that is over, nobody else has a turn who serves.
func (v *View) someoneGoes() bool {
	return slices.ContainsFunc(v.Sets, func(s *replicas.Set) bool { return s.Going() > 0 })
}

// servesForOthers: who goes serves until another does, and that one may have to restart for it.
func (v *View) servesForOthers(budget int) bool {
	return budget <= 0 && slices.ContainsFunc(v.Members, func(m *replicas.Member) bool { return m.Goes && m.Available })
}

func (v *View) provedInVain() bool {
	inVain, _ := v.inVain()
	return inVain && v.lack() != ""
}

// lack says why no borrowed pod can be had; empty if one can. One that has a node but does not work is another matter: the new
// version may be broken.
func (v *View) lack() string {
	if v.Target == nil || v.Target.Loan == 0 {
		return ""
	}
	why, absent := "", v.Target.Missing()
	for _, m := range v.Target.Borrowed() {
		if m.Pod.Spec.NodeName == "" {
			absent++
			why = conditions.ConditionMessage(m.Pod, corev1.PodScheduled)
		}
	}
	if absent < v.Target.Loan {
		return ""
	}
	if failure := v.formula().ReplicaFailure(); failure != nil {
		why = cmp.Or(why, failure.Message)
	}
	return strings.TrimSuffix("no pod could be borrowed: "+why, ": ")
}

// forget leaves nothing of a loan where the native controllers go on: what is too much is its surge.
func (v *View) forget() {
	v.closeAccount()
	for _, s := range v.Sets {
		for _, m := range s.Borrowed() {
			v.Step(m.Stay())
		}
	}
}

func (v *View) closeAccount() {
	for _, s := range v.Sets {
		s.Wish.Borrowed = ""
	}
}
