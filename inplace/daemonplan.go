package inplace

import (
	"slices"
	"time"

	"gomodules.xyz/jsonpatch/v2"
)

// Plan returns the next steps, derived from nothing but what was observed: it may be asked at any moment, by anyone.
//
// There is no step for the status: a denied DELETE is no error to the DaemonSet controller, which goes on to count pods by their
// hash label and writes the status itself (syncDaemonSet in pkg/controller/daemon/daemon_controller.go).
func (r DaemonRollout) Plan() Plan {
	if r.untouched() {
		return r.Mode.plan()
	}
	v := r.view()
	if !v.judged.Held {
		v.leave()
		return v.finish(nil)
	}
	if reason := v.notAsRehearsed(); reason != nil {
		return r.Release(*reason)
	}
	if v.unrehearsed() {
		return v.finish(v.rehearse())
	}
	return v.finish(v.update())
}

// update is the whole story of an update in place. It returns whose turn it is.
func (v *daemonView) update() turns {
	v.forgetRecord(v.DaemonSet, v.Recorded, false)
	turns := v.proceed()
	v.gates(turns)
	return turns
}

// proceed does what is next. The update is marked first: who finds it later knows that there is somebody to wake.
func (v *daemonView) proceed() turns {
	switch {
	case v.target == nil:
		v.phase(PhaseWaiting, "the DaemonSet controller has not recorded the new revision")
		return nil
	case !UnderWay(v.target):
		v.mark()
		return nil
	}
	v.sign()
	v.plan.Bypassed = v.bypassed()
	return v.move(v.prePull().advance(false))
}

// bypassed looks for a pod that was born in the middle of the update and has no gate: nobody asked the webhooks about its birth, nor then
// about the deletion of the one before it. That deletion itself shows nothing, since anybody may delete a pod.
func (v *daemonView) bypassed() string {
	begun := startedAt(v.target.Labels[labelUnderWay])
	for _, m := range v.members {
		if !Gated(m.pod) && m.pod.CreationTimestamp.After(begun) {
			return "pod " + m.pod.Name + " was born without its readiness gate"
		}
	}
	return ""
}

func (v *daemonView) gates(turns turns) { v.openGates(v.states(), turns, v.Now) }

// move takes each pod one step further. Pods that do not serve anyway go first and cost nothing, as natively, so an undo always
// gets through. It returns whose turn it is, of the pods that lack nothing.
func (v *daemonView) move(lacking lacking) turns {
	budget, turns := v.DaemonSet.maxUnavailable(v.desired())-v.unavailable(), turns{}
	for m := range v.pending() {
		turns[&m.podState] = lacking.mayStart(&m.podState) && m.restarts() && Closed(m.pod)
		if m.needs.InPlace() && v.reachable(m.pod) {
			v.moveOne(m, lacking, turns, &budget)
		}
	}
	return turns
}

func (v *daemonView) moveOne(m *daemon, lacking lacking, turns turns, budget *int) {
	drain := turns.drainage(&m.podState, v.Endpoints, v.Settings.Drain, v.Now)
	v.again(drain.left)
	starting, grownIn := m.starting(v.Now)
	switch {
	case drain.over || m.light():
		v.step(m.advance(v.target, turns[&m.podState], v.Now))
	case turns[&m.podState] || !m.restarts() || !lacking.mayStart(&m.podState):
	case starting:
		v.again(grownIn)
	case !m.available:
		v.start(m, turns)
	case *budget > 0:
		*budget--
		v.start(m, turns)
	}
}

// start drains a pod first that can be drained.
func (v *daemonView) start(m *daemon, turns turns) {
	if !m.drains() {
		v.step(m.advance(v.target, false, v.Now))
		return
	}
	turns[&m.podState] = true
	v.step(closeGate(m.pod, v.Now, m.needs.OfContainers().String()))
}

// advance makes the pod's next write on its way to the target; drained: it had a turn. With it comes the identity, at once, so that at every
// moment the hash says what its spec is.
func (m *daemon) advance(target *ControllerRevision, drained bool, now time.Time) PatchPod {
	w, hash := m.nextWrite(), target.Labels[labelRevisionHash]
	identity := hash
	if w.ends == endsHalfway {
		identity = hashBetween
	}
	mark := m.move.next(m.pod, hash, m.move.pending(m.pod, now), w.does, now)
	return m.patch(w, drained, mark, m.identify(identity), w.describe(m.revision.Name, target.Name))
}

// identify gives the pod that hash. The label pod-template-generation goes: the native controller takes it for the hash's equal, and it would
// be stale.
func (m *daemon) identify(hash string) []jsonpatch.Operation {
	return setEntries("labels", m.pod.Labels, [2]string{labelRevisionHash, hash}, [2]string{labelTemplateGeneration, ""})
}

// mark marks the target as that of an update under way.
func (v *daemonView) mark() {
	v.phase(PhaseMoving, "mark the new revision")
	v.unmark()
	v.set(v.target, func(m *marks) { m.underWay = seconds(v.Now) })
	v.patchRevisions()
}

// unmark ends what other updates, or this one, have left.
func (v *daemonView) unmark() {
	for _, each := range v.Revisions {
		v.set(each, func(m *marks) {
			m.underWay = ""
			m.released = v.released(each, m.released)
		})
	}
}

// sign signs the target of an update under way: see HoldLasts.
func (v *daemonView) sign() {
	v.set(v.target, func(m *marks) { m.woken = v.tend(v.target.Labels, v.Now) })
	v.patchRevisions()
}

// released is touched as long as there is something left to do for the native controller, and taken off when that is over.
func (v *daemonView) released(each *ControllerRevision, value string) string {
	if value == "" {
		return ""
	}
	return v.touched(value, each == v.target && v.unfinished(), touchDaemonEvery, v.Now)
}

func (v *daemonView) set(each *ControllerRevision, change func(*marks)) {
	m := v.marks[each]
	change(&m)
	v.marks[each] = m
}

// patchRevisions writes what became of the marks.
func (v *daemonView) patchRevisions() {
	for _, each := range v.Revisions {
		operations := setEntries("labels", each.Labels,
			[2]string{labelUnderWay, v.marks[each].underWay}, [2]string{LabelReleased, v.marks[each].released},
			[2]string{LabelWoken, v.marks[each].woken})
		if len(operations) > 0 {
			v.step(PatchRevision{Revision: each, Operations: guarded(each, operations...), Why: "marks"})
		}
	}
}

// Release gives the update back to the native controller: gates opened as soon as that is safe, and, unless all pods are the target's already, the
// target labelled, which ends the hold and wakes that controller (updateHistory in pkg/controller/daemon/daemon_controller.go).
// A pod that is half-way has no revision's hash and is replaced.
func (r DaemonRollout) Release(why Reason) Plan {
	v := r.view()
	v.judged = Verdict{Target: v.judged.Target, Reasons: Reasons{why}}
	if v.unfinished() {
		v.record(v.DaemonSet, v.targetHash(), why)
	}
	v.gates(nil)
	v.dismissAll(v.Pull.Pullers, why.Message)
	v.letGo()
	v.phase(PhaseNative, why.Message)
	return v.finish(nil)
}

// letGo takes the marks off. Whatever was held is not tried again by itself: as long as pods are left, somebody has to be woken.
func (v *daemonView) letGo() {
	v.unmark()
	if v.target != nil && v.unfinished() && v.DaemonSet.DeletionTimestamp == nil {
		v.set(v.target, func(m *marks) { m.released = seconds(v.Now) })
	}
	v.patchRevisions()
}

// leave leaves nothing of ours behind where the native controller updates, or has nothing to do. What we had begun is given back.
func (v *daemonView) leave() {
	v.gates(nil)
	v.keepRecord()
	v.prePull().leave(v.judged.Reasons)
	if v.target != nil && UnderWay(v.target) {
		v.letGo()
		return
	}
	v.unmark()
	v.wake()
	v.patchRevisions()
}

// wake wakes the native controller once after a gate has moved: until then it may have been kept from deleting a pod for that alone (see
// gateMoved), and it does not try twice.
func (v *daemonView) wake() {
	if v.target == nil || v.workloadReason(v.target) != nil || !v.unfinished() {
		return
	}
	moved, woken := v.lastGate(), v.target.Labels[LabelWoken]
	known, wait := since(moved, gateSeenAfter, v.Now)
	longAgo, _ := since(moved, touchEvery, v.Now)
	switch {
	case longAgo:
		return
	case !known:
		v.again(wait)
	case timeOf(woken).Before(moved.Add(gateSeenAfter)):
		woken = seconds(v.Now)
	}
	v.set(v.target, func(m *marks) { m.woken = woken })
}

// lastGate is when a gate was last moved by the leader; zero if none was.
func (v *daemonView) lastGate() time.Time {
	var last time.Time
	for _, m := range v.members {
		if gate := movedGate(m.pod); gate != nil && gate.LastTransitionTime.After(last) {
			last = gate.LastTransitionTime.Time
		}
	}
	return last
}

// finish adds what every plan says about itself.
func (v *daemonView) finish(turns turns) Plan {
	v.arrange()
	v.plan.Verdict = v.judged
	v.plan.NotRehearsed = v.rehearsed.Unknown
	v.plan.Progress = v.progress(turns)
	if v.plan.Phase != "" {
		return v.plan
	}
	switch {
	case !v.judged.Held && len(v.judged.Reasons) > 0:
		v.phase(PhaseNative, v.judged.Reasons.String())
	case !v.judged.Held && v.plan.Progress.Moving == 0:
		v.phase(PhaseIdle, "every pod runs what the DaemonSet says")
	default:
		v.phase(PhaseMoving, v.draft.progress())
	}
	return v.plan
}

func (v *daemonView) progress(turns turns) Progress {
	progress := Progress{Replicas: int32(v.desired())}
	for _, m := range v.members {
		switch {
		case turns[&m.podState] || !m.arrived || Closed(m.pod):
			progress.Moving++
		case v.updated(m):
			progress.Moved++
		}
	}
	if at := slices.IndexFunc(v.Revisions, UnderWay); at >= 0 {
		progress.Started = startedAt(v.Revisions[at].Labels[labelUnderWay])
	}
	return progress
}
