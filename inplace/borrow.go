package inplace

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Where no pod may be missed, an update borrows: the target gets up to maxSurge replicas more, really created, and once they are
// available as many pods at a time as were borrowed are updated in place. Then the borrowed ones are given back. So a new version
// that does not work costs no old pod anything.
//
// How many replicas of a ReplicaSet are borrowed is noted on it by the patch that raises it: nothing else tells them from those that
// the user wants. Which pods they are is marked on the pods once they are there, for the others shall stay.

const (
	// firstToGo is the lowest pod-deletion-cost: of pods equally ready their controller deletes that one first (ActivePodsWithRanks
	// in pkg/controller/controller_utils.go; GetDeletionCostFromPodAnnotations in pkg/apis/core/helper says what parses).
	firstToGo = "-2147483648"
	// unobtainable, noted on a target, says that nothing could be borrowed and the update goes on without.
	unobtainable = "0"
)

// Borrowed tells whether replicas of the ReplicaSet are borrowed.
func Borrowed(rs *ReplicaSet) bool { return noted(rs) > 0 }

func noted(rs *ReplicaSet) int {
	n, err := strconv.Atoi(rs.Labels[LabelBorrowed])
	if err != nil {
		return 0
	}
	return max(0, n)
}

// MayGo tells whether a pod whose ReplicaSet is settling may be deleted all the same: it was borrowed, is given back, and clients
// have been told to leave it, if it could tell them, or if it serves at all.
func MayGo(pod *corev1.Pod) bool {
	return goes(pod) && (!Gated(pod) || Closed(pod) || !IsTrue(pod, corev1.PodReady))
}

func goes(pod *corev1.Pod) bool {
	return pod.Annotations[AnnotationBorrowed] != "" && pod.Annotations[corev1.PodDeletionCost] == firstToGo
}

// borrows tells whether an update may borrow: no pod may be missed.
func (r Rollout) borrows() bool {
	d := r.Deployment
	return r.Settings.Borrow && d.rolls() && desired(d) > 0 && d.maxUnavailable() == 0
}

// borrowing: it may, and it is not in vain.
func (v *view) borrowing() bool { return v.borrows() && !v.notedInVain() && !v.alone() }

func (v *view) notedInVain() bool {
	return v.target != nil && v.target.rs.Labels[LabelBorrowed] == unobtainable
}

// loans finds out how many replicas of each ReplicaSet are borrowed: what is noted, unless the native controller has lowered the sum
// since, or the user wants as many pods by now. Then those are pods like others; on the target first, where they are to be anyway.
func (v *view) loans() {
	left := max(0, v.total()-v.desired())
	take := func(s *replicaSet) {
		s.loan = min(s.noted(), left, s.lendable())
		left -= s.loan
	}
	for _, s := range v.sets {
		if s != v.target {
			take(s)
		}
	}
	if v.target != nil {
		take(v.target)
	}
}

// lendable is how many of its replicas may be borrowed. Once its controller knows all its pods, none is that was moved: what is noted of those that
// somebody else has scaled away would be kept for nobody, and nobody would get a turn.
func (s *replicaSet) lendable() int {
	if !s.seen() {
		return max(s.size(), len(s.pods))
	}
	return len(s.borrowed()) + len(s.youngest()) + s.missing()
}

// excess is how many replicas there are more than the Deployment wants, borrowed ones aside; negative if too few.
func (v *view) excess() int { return v.sum() - v.loan() - v.desired() }

// account keeps the notes true and the pods marked.
func (v *view) account() {
	inVain, _ := v.inVain()
	for _, s := range v.sets {
		switch {
		case s == v.target && v.notedInVain():
		case s.overNoted() && !s.seen(): // what was lowered may have been created in that moment
			s.wish.borrowed = note(s.noted())
		case s == v.target && s.overNoted() && s.loan == 0 && inVain:
			s.wish.borrowed = unobtainable
		default:
			s.wish.borrowed = note(s.loan)
		}
		v.lendPods(s)
		v.giveBackFirst(s)
	}
}

// noted is what may be borrowed: so the note says, or somebody else has added it.
func (s *replicaSet) noted() int { return noted(s.rs) + s.surged() }

// overNoted: more is noted than is borrowed by now.
func (s *replicaSet) overNoted() bool { return s.noted() > s.loan }

// inVain tells whether the deadline passed before anything could be borrowed, or no node was found for it, and the user has not said outright
// that no pod may be missed; if it is only a matter of time, of how much.
func (v *view) inVain() (bool, time.Duration) {
	switch {
	case !v.borrowing() || !v.anyToRestart() || explicitZero(v.Deployment):
		return false, 0
	case Overdue(v.Deployment):
		return true, 0
	}
	return v.unplaceable()
}

func note(loan int) string {
	if loan == 0 {
		return ""
	}
	return strconv.Itoa(loan)
}

// lendPods marks as many pods as are borrowed and have come. Among the pods that a controller created meanwhile nobody can tell
// the borrowed ones, and nobody needs to: all of them are younger than the update.
func (v *view) lendPods(s *replicaSet) {
	marked := s.borrowed()
	// Those for whom replicas were lowered already are still there; which of them, their controller decides. Of one too many it might choose the one
	// that serves again, which is held.
	for _, m := range marked[min(len(marked), s.loan+s.surplus()):] {
		v.step(m.stay())
	}
	if !s.seen() {
		return
	}
	young, unmarked := s.youngest(), max(0, s.loan-len(marked)-s.missing())
	for _, m := range young[:min(len(young), unmarked)] {
		if !AwaitsGate(m.pod) { // its gate comes first
			v.step(m.lend())
		}
	}
}

// giveBackFirst gives back, in the place of a borrowed pod that may go, any that their controller deletes before it whatever their costs:
// it would try that one, which is held. And where the nodes are full that one may be waiting for the very place of the borrowed.
func (v *view) giveBackFirst(s *replicaSet) {
	var going []*member
	for _, m := range s.pods {
		if MayGo(m.pod) {
			going = append(going, m)
		}
	}
	for _, m := range s.pods {
		if !m.goes && slices.ContainsFunc(going, m.precedes) {
			v.step(m.dismissed())
		}
	}
}

// precedes tells whether this pod is deleted before the other, which may go: by what ActivePodsWithRanks compares before the costs.
func (m *member) precedes(other *member) bool {
	placed := func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" }
	pending := func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodPending }
	switch {
	case placed(m.pod) != placed(other.pod):
		return placed(other.pod)
	case pending(m.pod) != pending(other.pod):
		return pending(m.pod)
	}
	return !Gated(other.pod) && other.ready() && !m.ready() // one with a gate is closed and will not be Ready
}

// unlent: some pod is borrowed and nobody knows yet which. Until then it must not be moved as one of the others.
func (v *view) unlent() bool {
	return slices.ContainsFunc(v.sets, func(s *replicaSet) bool {
		unmarked := s.loan - len(s.borrowed())
		if s == v.target {
			unmarked -= s.missing()
		}
		return unmarked > 0
	})
}

// borrowed are the pods marked: those that go already first, most of all those that may, then those that do not serve.
func (s *replicaSet) borrowed() []*member {
	var marked []*member
	for _, m := range s.pods {
		if m.borrowed {
			marked = append(marked, m)
		}
	}
	rank := func(m *member) int {
		switch {
		case MayGo(m.pod) && !m.available:
			return 0
		case MayGo(m.pod):
			return 1
		case m.goes:
			return 2
		case !m.available:
			return 3
		}
		return 4
	}
	slices.SortStableFunc(marked, func(a, b *member) int { return rank(a) - rank(b) })
	return marked
}

// youngest are its pods that are not marked, and were not moved: those were there before anything was borrowed.
func (s *replicaSet) youngest() []*member {
	var pods []*member
	for _, m := range s.pods {
		if !m.borrowed && m.pod.Annotations[AnnotationMove] == "" {
			pods = append(pods, m)
		}
	}
	slices.SortStableFunc(pods, func(a, b *member) int { return b.pod.CreationTimestamp.Compare(a.pod.CreationTimestamp.Time) })
	return pods
}

// missing is how many pods its controller has yet to create, or cannot.
func (s *replicaSet) missing() int { return max(0, s.size()-len(s.pods)) }

// borrowable is what the update may have more and has use for.
func (v *view) borrowable() int {
	if v.target == nil || v.paused() || !v.borrowing() || v.provedInVain() || slices.ContainsFunc(v.sets, (*replicaSet).overNoted) {
		return 0
	}
	return max(0, min(int(v.Deployment.maxSurge()), v.needy())-v.loan())
}

// borrow raises the target by that.
func (v *view) borrow(more int) {
	v.post(v.target, more, CauseBorrowed)
	v.target.wish.borrowed = note(v.target.loan + more)
	v.phase(PhaseScaling, "borrow pods")
}

// needy counts the pods that serve and must restart.
func (v *view) needy() int {
	needy := 0
	for _, m := range v.members {
		if m.toRestart() && m.ready() {
			needy++
		}
	}
	return needy
}

// anyToRestart: some pod is still to restart, those borrowed aside.
func (v *view) anyToRestart() bool {
	return slices.ContainsFunc(v.members, func(m *member) bool { return m.toRestart() })
}

// kept is how many borrowed pods of the ReplicaSet the update has use for. Those an edit has left on a source prove nothing about the
// target: unless it is known to work, they make room for others. Borrowed pods are never moved themselves.
func (v *view) kept(s *replicaSet) int {
	if !v.borrowing() || !v.anyToRestart() || s == v.target && v.provedInVain() || v.target == nil {
		return 0
	}
	most := int(v.Deployment.maxSurge())
	switch {
	case s == v.target:
		return min(s.loan, most)
	case v.target.available() == 0:
		return 0
	}
	return min(s.loan, max(0, most-v.target.loan))
}

// due are the ReplicaSets with borrowed pods that are no longer of use, and how many of each. Who has begun to go, goes.
func (v *view) due(turns turns) map[*replicaSet]int {
	due := map[*replicaSet]int{}
	if v.someoneRestarts(turns) {
		return due
	}
	for _, s := range v.sets {
		left := max(s.loan-v.kept(s), min(s.loan, s.going()))
		if s != v.target {
			left = max(left, min(s.loan-len(s.borrowed()), s.missing()))
		}
		if left > 0 {
			due[s] = left
		}
	}
	return due
}

// giveBack lowers replicas by those. Their controller must choose just them, so they are made the first to go; and they are drained, as one
// that restarts is.
func (v *view) giveBack(due map[*replicaSet]int, turns turns) {
	budget := v.budget()
	for _, s := range v.sets {
		left := due[s]
		v.lowerMissing(s, &left)
		for _, m := range s.borrowed()[:min(left, len(s.borrowed()))] {
			switch {
			case m.available && budget <= 0: // it serves until another does
			case m.available:
				budget--
				v.dismiss(m, turns)
			default:
				v.dismiss(m, turns)
			}
		}
	}
	if v.provedInVain() {
		v.noteInVain()
		v.plan.Phase, v.plan.Message = PhaseStalled, v.lack()+"; pods restart one at a time"
	}
}

// noteInVain notes with the patch that gives the last borrowed replica back that nothing can be borrowed: the pods that showed it go.
func (v *view) noteInVain() {
	if v.ledger.of(v.target.rs.Name).By() == -v.target.loan {
		v.target.wish.borrowed = unobtainable
	}
}

// someoneRestarts, or is drained for it. That comes to its end before anything is given back.
func (v *view) someoneRestarts(turns turns) bool {
	return slices.ContainsFunc(v.members, func(m *member) bool { return turns[&m.podState] && !m.goes })
}

// lowerMissing gives back what cannot be created. What just has not been yet comes first.
func (v *view) lowerMissing(s *replicaSet, left *int) {
	if !s.failing() {
		return
	}
	gone := max(0, min(*left, s.loan-len(s.borrowed()), s.missing()))
	v.post(s, -gone, CauseGivenBack)
	*left -= gone
}

// dismiss takes a borrowed pod one step closer to its end.
func (v *view) dismiss(m *member, turns turns) {
	drain := v.drainage(m, turns)
	switch {
	case !m.goes:
		v.step(m.dismissed())
	case Gated(m.pod) && !Closed(m.pod):
		v.step(closeGate(m.pod, v.Now, "it is given back"))
	case (drain.over || !Gated(m.pod)) && m.owner.missing() == 0:
		v.phase(PhaseScaling, "give borrowed pods back")
		v.post(m.owner, -1, CauseGivenBack)
	default:
		v.again(drain.left)
	}
}

// going counts its pods that are given back.
func (s *replicaSet) going() int {
	going := 0
	for _, m := range s.pods {
		if m.goes {
			going++
		}
	}
	return going
}

// someoneGoes: until that is over, nobody else has a turn who serves.
func (v *view) someoneGoes() bool {
	return slices.ContainsFunc(v.sets, func(s *replicaSet) bool { return s.going() > 0 })
}

// servesForOthers: who goes serves until another does, and that one may have to restart for it.
func (v *view) servesForOthers(budget int) bool {
	return budget <= 0 && slices.ContainsFunc(v.members, func(m *member) bool { return m.goes && m.available })
}

// staying is how many of its pods are to be counted: those leaving are on their way to the target, and those given back to their end, once
// replicas may have been lowered for them.
func (s *replicaSet) staying(leaving int) int {
	return len(s.pods) - leaving - min(s.ending(), s.surplus())
}

// ending counts its pods that are given back and for which replicas may have been lowered.
func (s *replicaSet) ending() int {
	return s.count(func(m *member) bool { return m.goes && m.mayBeLowered() })
}

// mayBeLowered: replicas are lowered for a pod that is given back when it is drained, or cannot be.
func (m *member) mayBeLowered() bool { return Closed(m.pod) || !Gated(m.pod) }

func (v *view) provedInVain() bool {
	inVain, _ := v.inVain()
	return inVain && v.lack() != ""
}

// lack says why no borrowed pod can be had; empty if one can. One that has a node but does not work is another matter: the new
// version may be broken.
func (v *view) lack() string {
	if v.target == nil || v.target.loan == 0 {
		return ""
	}
	why, absent := "", v.target.missing()
	for _, m := range v.target.borrowed() {
		if m.pod.Spec.NodeName == "" {
			absent++
			why = conditionMessage(m.pod, corev1.PodScheduled)
		}
	}
	if absent < v.target.loan {
		return ""
	}
	if failure := v.formula().replicaFailure(); failure != nil {
		why = cmp.Or(why, failure.Message)
	}
	return strings.TrimSuffix("no pod could be borrowed: "+why, ": ")
}

func conditionMessage(pod *corev1.Pod, kind corev1.PodConditionType) string {
	if c := condition(pod, kind); c != nil {
		return c.Message
	}
	return ""
}

// forget leaves nothing of a loan where the native controllers go on: what is too much is its surge.
func (v *view) forget() {
	v.closeAccount()
	for _, s := range v.sets {
		for _, m := range s.borrowed() {
			v.step(m.stay())
		}
	}
}

func (v *view) closeAccount() {
	for _, s := range v.sets {
		s.wish.borrowed = ""
	}
}

// lend marks the pod as borrowed.
func (m *member) lend() PatchPod {
	return m.annotated("borrowed", [2]string{AnnotationBorrowed, "true"})
}

// dismissed makes the pod the first that its controller deletes.
func (m *member) dismissed() PatchPod {
	return m.annotated("given back", [2]string{AnnotationBorrowed, "true"}, [2]string{corev1.PodDeletionCost, firstToGo})
}

// stay makes the pod one like the others, with the deletion cost its template gave it.
func (m *member) stay() PatchPod {
	entries := [][2]string{{AnnotationBorrowed, ""}}
	if m.goes {
		entries = append(entries, [2]string{corev1.PodDeletionCost, m.owner.rs.Spec.Template.typed().Annotations[corev1.PodDeletionCost]})
	}
	return m.annotated("stays", entries...)
}

func (s *podState) annotated(why string, entries ...[2]string) PatchPod {
	return PatchPod{Pod: s.pod, Operations: guarded(s.pod, setEntries("annotations", s.pod.Annotations, entries...)...), Why: why}
}
