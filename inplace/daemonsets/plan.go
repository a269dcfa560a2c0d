package daemonsets

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/inplace/times"
)

// Plan returns the next steps, derived from nothing but what was observed: it may be asked at any moment, by anyone.
//
// There is no step for the status: a denied DELETE is no error to the DaemonSet controller, which goes on to count pods by their
// hash label and writes the status itself (syncDaemonSet in pkg/controller/daemon/daemon_controller.go).
func (r DaemonRollout) Plan() steps.Plan {
	if r.untouched() {
		return steps.NativePlan(r.Mode)
	}
	v := r.view()
	if !v.judged.Held {
		v.leave()
		return v.finish(nil)
	}
	v.leaveRoom()
	v.unresized = member.NotResized(&v.Draft, v.states(), true, member.ResizeDeadline(nil), v.Now)
	if v.unresized != nil && !v.room.Protects() {
		return r.Release(*v.unresized)
	}
	if reason := cmp.Or(v.slipsAgain(), v.notAsRehearsed()); reason != nil {
		return r.Release(*reason)
	}
	if v.unrehearsed() {
		return v.finish(v.rehearse())
	}
	return v.finish(v.update())
}

// update is the whole story of an update in place. It returns whose turn it is.
func (v *daemonView) update() member.Turns {
	v.ForgetRecord(v.DaemonSet, v.Recorded, false)
	turns := v.proceed()
	v.gates(turns)
	return turns
}

// leaveRoom finds out what the partition leaves, and which pods it keeps.
func (v *daemonView) leaveRoom() {
	v.room = member.RoomOf(v.Settings.Partition, max(v.desired(), len(v.members)), v.states())
}

// proceed does what is next. The update is marked first: who finds it later knows that there is somebody to wake.
func (v *daemonView) proceed() member.Turns {
	switch {
	case v.target == nil:
		v.Phase(steps.PhaseWaiting, "the DaemonSet controller has not recorded the new revision")
		return nil
	case !UnderWay(v.target):
		v.mark()
		return nil
	}
	v.sign()
	if !v.steady() {
		return nil
	}
	return v.move(v.prePull().Advance(false))
}

func (v *daemonView) gates(turns member.Turns) { member.OpenGates(&v.Draft, v.states(), turns, v.Now) }

// move takes each pod one step further. Pods that do not serve anyway go first and cost nothing, as natively, so an undo always
// gets through. It returns whose turn it is, of the pods that lack nothing.
func (v *daemonView) move(lacking member.Lacking) member.Turns {
	budget, turns, room := v.DaemonSet.MaxUnavailable(v.desired())-v.unavailable(), member.Turns{}, v.room
	for m := range v.pending() {
		turns[&m.State] = lacking.MayStart(&m.State) && m.Restarts() && !m.AwaitsRoom() && readiness.Closed(m.Pod) && room.Take(&m.State)
	}
	for _, m := range v.idleFirst() {
		switch replaced := m.WhyReplaced() != nil; {
		case replaced && !m.Available:
			room.Take(&m.State) // it may be, at any moment
		case !replaced && v.reachable(m.Pod):
			v.moveOne(m, lacking, turns, &room, &budget)
		}
	}
	v.rest()
	return turns
}

// idleFirst are the pods in the order in which they take what a partition leaves.
func (v *daemonView) idleFirst() []*daemon {
	var idle, serving []*daemon
	for m := range v.pending() {
		if m.Available {
			serving = append(serving, m)
		} else {
			idle = append(idle, m)
		}
	}
	return append(idle, serving...)
}

// leaves tells whether the partition leaves room for another pod in the place of that one.
func (v *daemonView) leaves(pod *corev1.Pod) bool {
	room := v.room
	for _, m := range v.idleFirst() {
		if takes := room.Take(&m.State); m.Pod.UID == pod.UID {
			return takes
		}
	}
	return true
}

// rest says so if the update waits for the partition alone, or for one that is none.
func (v *daemonView) rest() {
	stage, flaw, unresized := v.room.Waits(v.states()), v.room.Flaw(v.states()), v.room.Unresized(v.unresized)
	switch {
	case flaw != "":
		v.Phase(steps.PhaseStalled, flaw)
	case stage != "":
		v.Phase(steps.PhasePartition, stage)
	case unresized != "":
		v.Phase(steps.PhaseMoving, unresized) // the native controller may be about to replace it
	}
}

func (v *daemonView) moveOne(m *daemon, lacking member.Lacking, turns member.Turns, room *member.Room, budget *int) {
	drain := turns.Drainage(&m.State, v.Endpoints, v.Settings.Drain, v.Now)
	v.Again(drain.Left)
	starting, grownIn := m.Starting(v.Now)
	switch {
	case m.Resizing && !m.Resizes():
	case m.MidResize(), m.TakesTurns() && drain.Over, m.Light() && room.Take(&m.State):
		v.Step(m.advance(v.target, turns[&m.State], v.Now))
	case !m.mayBegin(lacking, turns):
	case starting && !turns[&m.State]:
		v.Again(grownIn)
	case m.Available && *budget <= 0, !turns[&m.State] && !room.Take(&m.State):
	case !m.Available:
		v.start(m, turns)
	default:
		*budget--
		v.start(m, turns)
	}
}

// mayBegin tells whether nothing but partition and budget keeps the pod from what is next.
func (m *daemon) mayBegin(lacking member.Lacking, turns member.Turns) bool {
	return (m.ResizesAlive() || m.Restarts() && !turns[&m.State]) && lacking.MayStart(&m.State)
}

// start drains a pod first that can be drained.
func (v *daemonView) start(m *daemon, turns member.Turns) {
	switch {
	case !m.Resizes() && !m.Announced(&v.Draft, v.Now):
		return
	case m.ResizesAlive() || !m.Drains():
		v.Step(m.advance(v.target, false, v.Now))
		return
	}
	turns[&m.State] = true
	v.Step(member.CloseGate(m.Pod, v.Now, m.Needs().OfContainers().String()))
}

// advance makes the pod's next write on its way to the target; drained: it had a turn. With it comes the identity, at once, so that at every
// moment the hash says what its spec is.
func (m *daemon) advance(target *apps.ControllerRevision, drained bool, now time.Time) steps.PatchPod {
	w, hash := m.NextWrite(), target.Labels[inplace.LabelRevisionHash]
	if w.Resizes {
		return m.Resize(w, w.Describe(m.revision.Name, target.Name))
	}
	if w.Notes() { // it stays one of its revision
		hash = m.revision.Labels[inplace.LabelRevisionHash]
	}
	mark, identity := m.Move.Next(m.Pod, hash, m.Move.Pending(m.Pod, now), w.Does, now), hash
	if w.Ends == member.EndsHalfway {
		mark.Resize, identity = m.Move.Noting(m.Containers, now), member.HashBetween
	}
	return m.Patch(w, drained, mark, m.identify(identity), w.Describe(m.revision.Name, target.Name))
}

// identify gives the pod that hash. The label pod-template-generation goes: the native controller takes it for the hash's equal, and it would
// be stale.
func (m *daemon) identify(hash string) []jsonpatch.Operation {
	return patches.SetEntries("labels", m.Pod.Labels, [2]string{inplace.LabelRevisionHash, hash}, [2]string{inplace.LabelTemplateGeneration, ""})
}

// mark marks the target as that of an update under way.
func (v *daemonView) mark() {
	v.Phase(steps.PhaseMoving, "mark the new revision")
	began := cmp.Or(v.began(), times.Seconds(v.Now))
	for _, each := range v.Revisions {
		v.set(each, func(m *marks) { m.released = v.released(each, m.released) })
	}
	v.noteOld(began)
	signed := maps.Clone(v.target.Labels)
	signed[labelUnderWay] = began
	v.set(v.target, func(m *marks) { m.underWay, m.woken = began, v.Tend(signed, v.Now) })
	v.patchRevisions()
}

// began is the mark of the update that is under way; empty if none is. An edit in the middle of one, or its undo, makes no other of it.
func (v *daemonView) began() string {
	for _, each := range v.Revisions {
		if UnderWay(each) {
			return each.Labels[labelUnderWay]
		}
	}
	return ""
}

// noteOld notes which revisions pods have besides the target, unless that is known since the update began. It takes writes of its own, and so waits
// for a partition. By then a pod may be half-way, which has the target's already.
func (v *daemonView) noteOld(began string) {
	if v.Settings.Partition == "" || v.notedOld(began) {
		return
	}
	for _, each := range v.Revisions {
		v.set(each, func(m *marks) { m.old = "" })
	}
	for m := range v.pending() {
		if m.revision != nil && m.revision.ControllerRevision != v.target {
			v.set(m.revision.ControllerRevision, func(m *marks) { m.old = began })
		}
	}
}

func (v *daemonView) notedOld(began string) bool {
	return slices.ContainsFunc(v.Revisions, func(each *apps.ControllerRevision) bool { return revisions.Old(each.Labels[inplace.LabelOld], began) })
}

// old tells whether pods had the revision when the update began; any, if that is not noted.
func (v *daemonView) old(one *apps.ControllerRevision) bool {
	began := v.began()
	return revisions.Old(one.Labels[inplace.LabelOld], began) || !v.notedOld(began)
}

// unmark ends what other updates, or this one, have left.
func (v *daemonView) unmark() {
	for _, each := range v.Revisions {
		v.set(each, func(m *marks) {
			m.underWay, m.old = "", ""
			m.released = v.released(each, m.released)
		})
	}
}

// sign signs the target of an update under way: see revisions.HoldLasts.
func (v *daemonView) sign() {
	for _, each := range v.Revisions {
		if each != v.target {
			v.set(each, func(m *marks) { m.underWay = "" }) // only now: since when the update is under way must not be lost
		}
	}
	v.noteOld(v.target.Labels[labelUnderWay])
	v.set(v.target, func(m *marks) { m.woken = v.Tend(v.target.Labels, v.Now) })
	v.patchRevisions()
}

// released is touched as long as there is something left to do for the native controller, and taken off when that is over.
func (v *daemonView) released(each *apps.ControllerRevision, value string) string {
	if value == "" {
		return ""
	}
	return v.Touched(value, each == v.target && v.unfinished(), revisions.TouchDaemonEvery, v.Now)
}

func (v *daemonView) set(each *apps.ControllerRevision, change func(*marks)) {
	m := v.marks[each]
	change(&m)
	v.marks[each] = m
}

// patchRevisions writes what became of the marks.
func (v *daemonView) patchRevisions() {
	for _, each := range v.Revisions {
		operations := patches.SetEntries("labels", each.Labels,
			[2]string{labelUnderWay, v.marks[each].underWay}, [2]string{inplace.LabelReleased, v.marks[each].released},
			[2]string{inplace.LabelWoken, v.marks[each].woken}, [2]string{inplace.LabelOld, v.marks[each].old})
		if len(operations) > 0 {
			v.Step(steps.PatchRevision{Revision: each, Operations: patches.Guarded(each, operations...), Why: "marks"})
		}
	}
}
