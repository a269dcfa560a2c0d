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
	blocked podstate.Blocked
	// turns are the pods that have their turn, among those that can be updated in place.
	turns podstate.Turns
	// budget is how many more pods may be taken out of service, partition what is left of the partition budget.
	budget    podstate.Budget
	partition podstate.PartitionBudget
}

// mover returns a mover that has moved nothing yet. Blocked pods get no turn.
func (o *observed) mover(blocked podstate.Blocked) *mover {
	return &mover{observed: o, blocked: blocked, turns: podstate.Turns{}, budget: o.budget(), partition: o.update.Partition}
}

// move moves those pods, in that order, and returns the pods that have their turn.
func (v *mover) move(next []*Pod) podstate.Turns {
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
	return v.turns
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
		mayRestart := v.blocked.MayStart(&m.State) && !m.AwaitsCapacity()
		v.turns[&m.State] = drains && mayRestart && v.partition.Take(&m.State)
	}
}

func (v *mover) moveOne(m *Pod) {
	turn, drain := v.turns[&m.State], v.update.DrainState(&m.State, v.turns)
	v.update.Plan.Again(drain.Left)
	starting, grownIn := m.Starting(v.seen.Now)
	switch {
	case m.Resizing && !m.Resizes():
	case m.MidResize(), m.TakesTurns() && drain.Over, m.NoRestart() && v.partition.Take(&m.State):
		v.update.Plan.Step(v.advance(m, turn))
	case !v.mayBegin(m):
	case starting && !turn:
		v.update.Plan.Again(grownIn)
	case !v.budget.Allows(&m.State), !turn && !v.allowed(m), !turn && !v.partition.Take(&m.State):
	default:
		v.budget.Take(&m.State)
		v.start(m)
	}
}

// mayBegin reports whether only the partition and the budget can keep the pod from what is next.
func (v *mover) mayBegin(m *Pod) bool {
	begins := m.Restarts() && !v.turns[&m.State]
	if !begins && !m.ResizesAlive() || !v.blocked.MayStart(&m.State) {
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
	v.turns[&m.State] = true
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
