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
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/inplace/times"
)

// Plan returns the next steps, derived from nothing but what was observed: it may be asked at any moment, by anyone.
//
// There is no step for the status: a denied DELETE is no error to the DaemonSet controller, which goes on to count pods by their
// hash label and writes the status itself (syncDaemonSet in pkg/controller/daemon/daemon_controller.go).
func (r Rollout) Plan() steps.Plan {
	if r.untouched() {
		return steps.NativePlan(r.Mode)
	}
	v := r.planner()
	if !v.decided.Held {
		v.leave()
		return v.finish(nil)
	}
	v.applyPartition()
	v.unresized = podstate.NotResized(&v.PlanBuilder, v.states(), true, podstate.ResizeDeadline(nil), v.Now)
	if v.unresized != nil && !v.partition.HoldsPods() {
		return r.FallBack(*v.unresized)
	}
	if reason := cmp.Or(v.bypassedAgain(), v.againstDryRun()); reason != nil {
		return r.FallBack(*reason)
	}
	if v.needsDryRun() {
		return v.finish(v.dryRun())
	}
	return v.finish(v.update())
}

// update is the whole story of an update in place. It returns whose turn it is.
func (v *planner) update() podstate.Turns {
	v.ForgetFallback(v.DaemonSet, v.PersistedFallback, false)
	turns := v.proceed()
	v.gates(turns)
	return turns
}

// applyPartition finds out what the partition leaves, and which pods it keeps.
func (v *planner) applyPartition() {
	v.partition = podstate.PartitionBudgetOf(v.Settings.Partition, max(v.desired(), len(v.members)), v.states())
}

// proceed does what is next. The update is marked first: who finds it later knows that there is somebody to wake.
func (v *planner) proceed() podstate.Turns {
	switch {
	case v.updateRevision == nil:
		v.Phase(steps.PhaseWaiting, "the DaemonSet controller has not recorded the new revision")
		return nil
	case !Updating(v.updateRevision):
		v.mark()
		return nil
	}
	v.renew()
	if !v.quiet() {
		return nil
	}
	return v.move(v.prePull().Advance(false))
}

func (v *planner) gates(turns podstate.Turns) {
	podstate.OpenGates(&v.PlanBuilder, v.states(), turns, v.Now)
}

// move takes each pod one step further. Pods that do not serve anyway go first and cost nothing, as natively, so an undo always
// gets through. It returns whose turn it is, of the pods that lack nothing.
func (v *planner) move(blocked podstate.Blocked) podstate.Turns {
	budget, turns, partition := v.DaemonSet.MaxUnavailable(v.desired())-v.unavailable(), podstate.Turns{}, v.partition
	for m := range v.pending() {
		turns[&m.State] = blocked.MayStart(&m.State) && m.Restarts() && !m.AwaitsCapacity() && readiness.Closed(m.Pod) && partition.Take(&m.State)
	}
	for _, m := range v.idleFirst() {
		switch replaced := m.WhyReplaced() != nil; {
		case replaced && !m.Available:
			partition.Take(&m.State) // it may be, at any moment
		case !replaced && v.reachable(m.Pod):
			v.moveOne(m, blocked, turns, &partition, &budget)
		}
	}
	v.checkPartition()
	return turns
}

// idleFirst are the pods in the order in which they take what a partition leaves.
func (v *planner) idleFirst() []*daemonPod {
	var idle, serving []*daemonPod
	for m := range v.pending() {
		if m.Available {
			serving = append(serving, m)
		} else {
			idle = append(idle, m)
		}
	}
	return append(idle, serving...)
}

// partitionLeaves reports whether the partition leaves room for another pod in the place of that one.
func (v *planner) partitionLeaves(pod *corev1.Pod) bool {
	partition := v.partition
	for _, m := range v.idleFirst() {
		if takes := partition.Take(&m.State); m.Pod.UID == pod.UID {
			return takes
		}
	}
	return true
}

// checkPartition says so if the update waits for the partition alone, or for one that is none.
func (v *planner) checkPartition() {
	stage, flaw, unresized := v.partition.Waits(v.states()), v.partition.Flaw(v.states()), v.partition.Unresized(v.unresized)
	switch {
	case flaw != "":
		v.Phase(steps.PhaseStalled, flaw)
	case stage != "":
		v.Phase(steps.PhasePartition, stage)
	case unresized != "":
		v.Phase(steps.PhaseUpdating, unresized) // the native controller may be about to replace it
	}
}

func (v *planner) moveOne(m *daemonPod, blocked podstate.Blocked, turns podstate.Turns, partition *podstate.PartitionBudget, budget *int) {
	drain := turns.DrainState(&m.State, v.Endpoints, v.Settings.Drain, v.Now)
	v.Again(drain.Left)
	starting, grownIn := m.Starting(v.Now)
	switch {
	case m.Resizing && !m.Resizes():
	case m.MidResize(), m.TakesTurns() && drain.Over, m.NoRestart() && partition.Take(&m.State):
		v.Step(m.advance(v.updateRevision, turns[&m.State], v.Now))
	case !m.mayBegin(blocked, turns):
	case starting && !turns[&m.State]:
		v.Again(grownIn)
	case m.Available && *budget <= 0, !turns[&m.State] && !partition.Take(&m.State):
	case !m.Available:
		v.start(m, turns)
	default:
		*budget--
		v.start(m, turns)
	}
}

// mayBegin reports whether nothing but partition and budget keeps the pod from what is next.
func (m *daemonPod) mayBegin(blocked podstate.Blocked, turns podstate.Turns) bool {
	return (m.ResizesAlive() || m.Restarts() && !turns[&m.State]) && blocked.MayStart(&m.State)
}

// start drains a pod first that can be drained.
func (v *planner) start(m *daemonPod, turns podstate.Turns) {
	switch {
	case !m.Resizes() && !m.VolumesFresh(&v.PlanBuilder, v.Now):
		return
	case m.ResizesAlive() || !m.Drains():
		v.Step(m.advance(v.updateRevision, false, v.Now))
		return
	}
	turns[&m.State] = true
	v.Step(podstate.CloseGate(m.Pod, v.Now, m.Needs().OfContainers().String()))
}

// advance makes the pod's next write on its way to the target; drained: it had a turn. With it comes the identity, at once, so that at every
// moment the hash says what its spec is.
func (m *daemonPod) advance(updateRevision *apps.ControllerRevision, drained bool, now time.Time) steps.PatchPod {
	w, hash := m.NextWrite(), updateRevision.Labels[inplace.LabelRevisionHash]
	if w.Resizes {
		return m.Resize(w, w.Describe(m.revision.Name, updateRevision.Name))
	}
	if w.Notes() { // it stays one of its revision
		hash = m.revision.Labels[inplace.LabelRevisionHash]
	}
	mark, identity := m.Move.Next(m.Pod, hash, m.Move.Pending(m.Pod, now), w.Does, now), hash
	if w.Ends == podstate.EndsPartial {
		mark.Resize, identity = m.Move.Noting(m.Containers, now), podstate.HashPartial
	}
	return m.Patch(w, drained, mark, m.identify(identity), w.Describe(m.revision.Name, updateRevision.Name))
}

// identify gives the pod that hash. The label pod-template-generation goes: the native controller takes it for the hash's equal, and it would
// be stale.
func (m *daemonPod) identify(hash string) []jsonpatch.Operation {
	return patches.SetEntries("labels", m.Pod.Labels, [2]string{inplace.LabelRevisionHash, hash}, [2]string{inplace.LabelTemplateGeneration, ""})
}

// mark marks the target as that of an update under way.
func (v *planner) mark() {
	v.Phase(steps.PhaseUpdating, "mark the new revision")
	began := cmp.Or(v.began(), times.Seconds(v.Now))
	for _, each := range v.Revisions {
		v.set(each, func(m *marks) { m.fallback = v.renewFallback(each, m.fallback) })
	}
	v.markCurrent(began)
	signed := maps.Clone(v.updateRevision.Labels)
	signed[labelUpdating] = began
	v.set(v.updateRevision, func(m *marks) { m.updating, m.renewed = began, v.NextRenewal(signed, v.Now) })
	v.patchRevisions()
}

// began is the mark of the update that is under way; empty if none is. An edit in the middle of one, or its undo, makes no other of it.
func (v *planner) began() string {
	for _, each := range v.Revisions {
		if Updating(each) {
			return each.Labels[labelUpdating]
		}
	}
	return ""
}

// markCurrent notes which revisions pods have besides the target, unless that is known since the update began. It takes writes of its own, and so waits
// for a partition. By then a pod may be half-way, which has the target's already.
func (v *planner) markCurrent(began string) {
	if v.Settings.Partition == "" || v.currentMarked(began) {
		return
	}
	for _, each := range v.Revisions {
		v.set(each, func(m *marks) { m.current = "" })
	}
	for m := range v.pending() {
		if m.revision != nil && m.revision.ControllerRevision != v.updateRevision {
			v.set(m.revision.ControllerRevision, func(m *marks) { m.current = began })
		}
	}
}

func (v *planner) currentMarked(began string) bool {
	return slices.ContainsFunc(v.Revisions, func(each *apps.ControllerRevision) bool {
		return revisions.IsCurrent(each.Labels[inplace.LabelCurrent], began)
	})
}

// isCurrent reports whether pods had the revision when the update began; any, if that is not noted.
func (v *planner) isCurrent(one *apps.ControllerRevision) bool {
	began := v.began()
	return revisions.IsCurrent(one.Labels[inplace.LabelCurrent], began) || !v.currentMarked(began)
}

// unmark ends what other updates, or this one, have left.
func (v *planner) unmark() {
	for _, each := range v.Revisions {
		v.set(each, func(m *marks) {
			m.updating, m.current = "", ""
			m.fallback = v.renewFallback(each, m.fallback)
		})
	}
}

// renew signs the target of an update under way: see revisions.HoldLasts.
func (v *planner) renew() {
	for _, each := range v.Revisions {
		if each != v.updateRevision {
			v.set(each, func(m *marks) { m.updating = "" }) // only now: since when the update is under way must not be lost
		}
	}
	v.markCurrent(v.updateRevision.Labels[labelUpdating])
	v.set(v.updateRevision, func(m *marks) { m.renewed = v.NextRenewal(v.updateRevision.Labels, v.Now) })
	v.patchRevisions()
}

// renewFallback is touched as long as there is something left to do for the native controller, and taken off when that is over.
func (v *planner) renewFallback(each *apps.ControllerRevision, value string) string {
	if value == "" {
		return ""
	}
	return v.NextNudge(value, each == v.updateRevision && v.unfinished(), revisions.NudgeDaemonSetEvery, v.Now)
}

func (v *planner) set(each *apps.ControllerRevision, change func(*marks)) {
	m := v.marks[each]
	change(&m)
	v.marks[each] = m
}

// patchRevisions writes what became of the marks.
func (v *planner) patchRevisions() {
	for _, each := range v.Revisions {
		operations := patches.SetEntries("labels", each.Labels,
			[2]string{labelUpdating, v.marks[each].updating}, [2]string{inplace.LabelFallback, v.marks[each].fallback},
			[2]string{inplace.LabelRenewed, v.marks[each].renewed}, [2]string{inplace.LabelCurrent, v.marks[each].current})
		if len(operations) > 0 {
			v.Step(steps.PatchRevision{Revision: each, Operations: patches.Guarded(each, operations...), Why: "marks"})
		}
	}
}
