package controllerrevisions

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

// PodProgress returns what users need to know of each live pod, by name.
func (v *Planner) PodProgress() []podstate.PodProgress {
	return v.Update.PodProgress(slices.ContainsFunc(v.Owned, revisions.Updating[*apps.ControllerRevision]), false)
}

// Started implements engine.Planner.
func (v *Planner) Started() time.Time { return revisions.StartedAt(v.began()) }

// ProceedingPhase implements engine.Planner.
func (v *Planner) ProceedingPhase(progress string) { v.plan.Phase(steps.PhaseUpdating, progress) }

// Impossible implements engine.Planner.
func (v *Planner) Impossible() *inplace.Reason {
	if reason := v.notResized(); reason != nil && !v.Update.Partition.HoldsPods() {
		return reason
	}
	return cmp.Or(v.bypassedAgain(), v.againstDryRun())
}

func (v *Planner) notResized() *inplace.Reason {
	return v.Update.NotResized(true, podstate.ResizeDeadline(nil))
}

// Proceed implements engine.Planner.
func (v *Planner) Proceed() (podstate.Turns, *inplace.Reason) {
	return v.proceed(), nil
}

// proceed plans what is next. It marks the update first: a manager that finds the mark later knows that the native controller needs a
// nudge.
func (v *Planner) proceed() podstate.Turns {
	switch {
	case v.UpdateRevision == nil:
		v.plan.Phase(steps.PhaseWaiting, "the "+v.Update.Workload.Kind+" controller has not created the update revision")
		return nil
	case !revisions.Updating(v.UpdateRevision):
		v.mark()
		return nil
	}
	v.renew()
	if !v.quiet() {
		return nil
	}
	return v.move(v.prePull().Advance(false))
}

// move moves each pod one step further. Pods that do not serve anyway go first and cost no budget, as natively, so an undo always gets
// through. It returns the pods that have their turn, among those that can be updated in place.
func (v *Planner) move(blocked podstate.Blocked) podstate.Turns {
	budget, turns, partition := v.kind.Budget(v.Live), podstate.Turns{}, v.Update.Partition
	for m := range v.pending() {
		turns[&m.State] = blocked.MayStart(&m.State) && m.Restarts() && !m.AwaitsCapacity() && readiness.Closed(m.Pod) && partition.Take(&m.State)
	}
	for _, m := range v.Next() {
		switch replaced := m.WhyReplaced() != nil; {
		case replaced && !m.Available:
			partition.Take(&m.State) // it may be replaced at any moment
		case replaced:
		case v.kind.Reachable(m.Pod):
			v.moveOne(m, blocked, turns, &partition, &budget)
		}
	}
	v.nudgeToReplace()
	v.checkPartition()
	return turns
}

// Next returns the pods without the update revision that go on, or may begin: see Kind.Next.
func (v *Planner) Next() []*Pod {
	return v.kind.Next(slices.Collect(v.pending()), v.kind.Budget(v.Live))
}

// IdleFirst returns the pods with those that do not serve in front.
func IdleFirst(pods []*Pod) []*Pod {
	var idle, serving []*Pod
	for _, m := range pods {
		if m.Available {
			serving = append(serving, m)
		} else {
			idle = append(idle, m)
		}
	}
	return append(idle, serving...)
}

// PartitionLeaves reports whether the partition budget allows another pod in place of this one.
func (v *Planner) PartitionLeaves(pod *corev1.Pod) bool {
	partition := v.Update.Partition
	for _, m := range v.Next() {
		if takes := partition.Take(&m.State); m.Pod.UID == pod.UID {
			return takes
		}
	}
	return true
}

// checkPartition sets the phase if the update waits only for the partition, or if the partition is not valid.
func (v *Planner) checkPartition() {
	partition, pods := v.Update.Partition, v.Update.Pods()
	stage, flaw := partition.Waits(pods), partition.Flaw(pods)
	switch {
	case flaw != "":
		v.plan.Phase(steps.PhaseStalled, flaw)
	case stage != "":
		v.plan.Phase(steps.PhasePartition, stage)
	case partition.HoldsPods():
		if unresized := partition.Unresized(v.notResized()); unresized != "" {
			v.plan.Phase(steps.PhaseUpdating, unresized) // the native controller may be about to replace the pod
		}
	}
}

func (v *Planner) moveOne(m *Pod, blocked podstate.Blocked, turns podstate.Turns, partition *podstate.PartitionBudget, budget *int) {
	drain := v.Update.DrainState(&m.State, turns)
	v.plan.Again(drain.Left)
	starting, grownIn := m.Starting(v.seen.Now)
	switch {
	case m.Resizing && !m.Resizes():
	case m.MidResize(), m.TakesTurns() && drain.Over, m.NoRestart() && partition.Take(&m.State):
		v.plan.Step(v.advance(m, turns[&m.State]))
	case !m.mayBegin(blocked, turns):
	case starting && !turns[&m.State]:
		v.plan.Again(grownIn)
	case m.Available && *budget <= 0, !turns[&m.State] && !partition.Take(&m.State):
	case !m.Available:
		v.start(m, turns)
	default:
		*budget--
		v.start(m, turns)
	}
}

// mayBegin reports whether only the partition and the budget can keep the pod from what is next.
func (m *Pod) mayBegin(blocked podstate.Blocked, turns podstate.Turns) bool {
	return (m.ResizesAlive() || m.Restarts() && !turns[&m.State]) && blocked.MayStart(&m.State)
}

// start drains a pod first if it can be drained.
func (v *Planner) start(m *Pod, turns podstate.Turns) {
	switch {
	case !m.Resizes() && !m.VolumesFresh(v.plan, v.seen.Now):
		return
	case m.ResizesAlive() || !m.Drains():
		v.plan.Step(v.advance(m, false))
		return
	}
	turns[&m.State] = true
	v.plan.Step(podstate.CloseGate(m.Pod, v.seen.Now, m.Needs().OfContainers().String()))
}

// advance returns the patch for the pod's next write on its way to the update revision. Drained says whether the pod had a turn. The patch
// also sets the identity, so that the label says at every moment what the pod's spec is.
func (v *Planner) advance(m *Pod, drained bool) steps.PatchPod {
	w, now, hash := m.NextWrite(), v.seen.Now, v.kind.PodLabel(v.UpdateRevision)
	why := w.Describe(m.revision.object.Name, v.UpdateRevision.Name)
	if w.Resizes {
		return m.Resize(w, why)
	}
	if w.Notes() { // the pod remains one of its revision
		hash = v.kind.PodLabel(m.revision.object)
	}
	mark, identity := m.Move.Next(m.Pod, hash, m.Move.Pending(m.Pod, now), w.Does, now), hash
	if w.Ends == podstate.EndsPartial {
		mark.Resize, identity = m.Move.Noting(m.Containers, now), podstate.HashPartial
	}
	return m.Patch(w, drained, mark, m.identify(identity), why)
}

// identify returns the operations that give the pod that label. They remove the label pod-template-generation: the DaemonSet controller
// takes it as equivalent, and it would be stale.
func (m *Pod) identify(hash string) []jsonpatch.Operation {
	return patches.SetEntries("labels", m.Pod.Labels,
		[2]string{inplace.LabelRevisionHash, hash}, [2]string{inplace.LabelTemplateGeneration, ""})
}

// mark marks the update revision: the update is in progress.
func (v *Planner) mark() {
	v.plan.Phase(steps.PhaseUpdating, "mark the update revision")
	began := cmp.Or(v.began(), times.Seconds(v.seen.Now))
	v.markCurrent(began)
	signed := maps.Clone(v.UpdateRevision.Labels)
	signed[inplace.LabelUpdating] = began
	v.set(v.UpdateRevision, func(m *marks) { m.updating, m.renewed = began, v.plan.NextRenewal(signed, v.seen.Now) })
	v.patchRevisions()
}

// began returns the mark of the update in progress; empty if none is. An edit in the middle of an update, or an undo, does not start
// another update.
func (v *Planner) began() string {
	for _, each := range v.Owned {
		if revisions.Updating(each) {
			return each.Labels[inplace.LabelUpdating]
		}
	}
	return ""
}

// markCurrent notes which revisions, besides the update revision, pods had when the update began, unless that is noted already. It takes
// extra writes, so it is done only where there is a partition. By then a pod may be partially patched; it has the update revision's hash in
// its mark already.
func (v *Planner) markCurrent(began string) {
	if v.seen.Settings.Partition == "" || v.currentMarked(began) {
		return
	}
	for _, each := range v.Owned {
		v.set(each, func(m *marks) { m.current = "" })
	}
	for m := range v.pending() {
		if m.revision != nil && m.revision.object != v.UpdateRevision {
			v.set(m.revision.object, func(m *marks) { m.current = began })
		}
	}
}

func (v *Planner) currentMarked(began string) bool {
	return slices.ContainsFunc(v.Owned, func(each *apps.ControllerRevision) bool {
		return revisions.IsCurrent(each.Labels[inplace.LabelCurrent], began)
	})
}

// isCurrent reports whether pods had the revision when the update began. If that is not noted for any revision, it reports true.
func (v *Planner) isCurrent(one *apps.ControllerRevision) bool {
	began := v.began()
	return revisions.IsCurrent(one.Labels[inplace.LabelCurrent], began) || !v.currentMarked(began)
}

// unmark removes the marks that other updates, or this one, have left.
func (v *Planner) unmark() {
	for _, each := range v.Owned {
		v.set(each, func(m *marks) { m.updating, m.current = "", "" })
	}
}

// renew renews the hold on the update revision of an update in progress: see revisions.HoldLasts.
func (v *Planner) renew() {
	for _, each := range v.Owned {
		if each != v.UpdateRevision {
			v.set(each, func(m *marks) { m.updating = "" }) // only now: the time at which the update began must not be lost
		}
	}
	v.markCurrent(v.UpdateRevision.Labels[inplace.LabelUpdating])
	v.set(v.UpdateRevision, func(m *marks) { m.renewed = v.plan.NextRenewal(v.UpdateRevision.Labels, v.seen.Now) })
	v.patchRevisions()
}

func (v *Planner) set(each *apps.ControllerRevision, change func(*marks)) {
	m := v.marks[each]
	change(&m)
	v.marks[each] = m
}

// patchRevisions adds the steps that write the changed marks.
func (v *Planner) patchRevisions() {
	for _, each := range v.Owned {
		operations := patches.SetEntries("labels", each.Labels,
			[2]string{inplace.LabelUpdating, v.marks[each].updating}, [2]string{inplace.LabelRenewed, v.marks[each].renewed},
			[2]string{inplace.LabelCurrent, v.marks[each].current})
		if len(operations) > 0 {
			v.plan.Step(steps.PatchRevision{Revision: each, Operations: patches.Guarded(each, operations...), Why: "marks"})
		}
	}
}
