package controllerrevisions

import (
	"gomodules.xyz/jsonpatch/v2"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// mover moves each pod one step further. Pods that do not serve anyway go first and cost no budget, as natively, so an undo always gets
// through. Those that serve and are not available yet follow.
type mover struct {
	*observed
	// budget is how many more pods may be taken out of service, partition what is left of the partition budget.
	budget    podstate.Budget
	partition podstate.PartitionBudget
}

// mover returns a mover that has moved nothing yet.
func (o *observed) mover() *mover {
	return &mover{observed: o, budget: o.budget(), partition: o.update.Partition}
}

// move moves those pods, in that order.
func (v *mover) move(next []*Pod) {
	v.keepTurns()
	for _, m := range next {
		switch replaced := m.WhyReplaced() != nil; {
		case m.Serving && v.keepsOrder():
		case replaced && !m.Available:
			v.partition.Take(&m.State) // it may be replaced at any moment
		case replaced:
		case v.update.Reachable(m.Pod):
			v.moveOne(m)
		}
	}
	v.update.Plan.MayStart(v.budget.Left())
}

// keepsOrder reports whether pods that serve wait because one before them waits for a PodDisruptionBudget or a limit. Pods that do not
// serve go on: the PodDisruptionBudget may wait for them.
func (v *mover) keepsOrder() bool {
	return v.kind.InOrder() && v.update.Plan.Result.Refused()
}

// keepTurns keeps the turns of pods that are out of service, unless the user raises the partition, or wants an image that is not on the
// pod's node yet.
func (v *mover) keepTurns() {
	for _, m := range v.pending {
		drains := m.Restarts() && readiness.Out(m.Pod)
		mayRestart := m.MayStart() && !m.AwaitsCapacity()
		m.Turn = drains && mayRestart && v.partition.Take(&m.State)
	}
}

func (v *mover) moveOne(m *Pod) {
	drain := v.update.DrainState(&m.State)
	v.update.Plan.Again(drain.Left)
	starting, grownIn := m.Starting(v.seen.Now)
	switch {
	case m.Resizing && !m.Resizes():
	case m.MidResize(), m.TakesTurns() && drain.Over, m.NoRestart() && v.partition.Take(&m.State):
		v.update.Plan.Step(v.advance(m, m.Turn))
	case !v.mayBegin(m):
	case starting && !m.Turn:
		v.update.Plan.Again(grownIn)
	case !v.budget.Allows(&m.State), !m.Turn && !v.allowed(m), !m.Turn && !v.partition.Take(&m.State):
	default:
		v.budget.Take(&m.State)
		v.start(m)
	}
}

// mayBegin reports whether only the partition and the budget can keep the pod from what is next.
func (v *mover) mayBegin(m *Pod) bool {
	begins := m.Restarts() && !m.Turn
	if !begins && !m.ResizesAlive() || !m.MayStart() {
		return false
	}
	return !m.Available || !v.waits(m, begins)
}

// waits reports whether other pods go before this one, which serves. Begins says whether it would restart.
func (v *mover) waits(m *Pod, begins bool) bool {
	if begins {
		return v.update.WaitsToRestart(&m.State)
	}
	return v.update.WaitsForNodes(&m.State)
}

// allowed reports whether PodDisruptionBudgets and limits allow what is next, and counts the pod if so.
func (v *mover) allowed(m *Pod) bool { return m.ResizesAlive() || v.update.TakeAllowance(&m.State) }

// start drains a pod first if it can be drained.
func (v *mover) start(m *Pod) {
	switch {
	case !m.Resizes() && !m.VolumesFresh(v.update.Plan, v.seen.Now):
		return
	case m.ResizesAlive() || !m.Drains():
		v.update.Plan.Step(v.advance(m, false))
		return
	}
	m.Turn = true
	v.update.TakeOut(&m.State, m.Needs().OfContainers().String())
}

// advance returns the patch for the pod's next write on its way to the update revision. Drained says whether the pod had a turn. The patch
// also sets the identity, so that the label says at every moment what the pod's spec is.
func (v *mover) advance(m *Pod, drained bool) steps.PatchPod {
	w, now, hash := m.NextWrite(), v.seen.Now, v.kind.PodLabel(v.updateRevision)
	why := w.Describe(m.revision.object.Name, v.updateRevision.Name)
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
