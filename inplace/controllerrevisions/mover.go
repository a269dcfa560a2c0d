package controllerrevisions

import (
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/steps"
)

// move has those pods go on, in that order.
func (o *observed) move(next []*Pod) {
	pace := o.update.Pace(o.budget(), engine.Filter{Name: "Ordinals", Guards: engine.Leave, Wait: o.ordinals})
	pace.KeepTurns(statesOf(o.pending, func(*Pod) bool { return true }))
	var pods []engine.Pod
	for _, m := range next {
		each := engine.Pod{State: &m.State, Of: &m.State}
		switch replaced := m.WhyReplaced() != nil; {
		case replaced && m.Available, !replaced && !o.update.Reachable(m.Pod):
			continue
		case !replaced:
			each.Write = func(drained bool) { o.update.Plan.Step(o.advance(m, drained)) }
		}
		pods = append(pods, each)
	}
	pace.Begin(pace.GoOn(pods))
}

// ordinals: a pod before it waits for a PodDisruptionBudget or a limit. Pods that do not serve go on: the former may wait for them.
func (o *observed) ordinals(_ *engine.Pace, s *podstate.State) *steps.Wait {
	if s.Serving && o.kind.Traits().InOrder && o.update.Plan.Result.Refused() != "" {
		return &steps.Wait{}
	}
	return nil
}

// advance returns the patch for the pod's next write on its way to the update revision. Drained says whether the pod had a turn. The patch
// also sets the identity, so that the label says at every moment what the pod's spec is.
func (o *observed) advance(m *Pod, drained bool) steps.PatchPod {
	w, now, hash := m.NextWrite(), o.seen.Now, o.kind.PodLabel(o.updateRevision)
	why := w.Describe(m.revision.object.Name, o.updateRevision.Name)
	if w.Resizes {
		return m.Resize(w, why)
	}
	if w.Notes() { // the pod remains one of its revision
		hash = o.kind.PodLabel(m.revision.object)
	}
	mark, identity := m.Move.Next(m.Pod, hash, m.Move.Pending(m.Pod, now), w.Does, now), hash
	if w.Ends == podstate.EndsPartial {
		mark.Resize, identity = m.Move.Resize.Noting(m.Containers, now), podstate.HashPartial
	}
	// The DaemonSet controller takes the label pod-template-generation as equivalent, and it would be stale.
	return m.Patch(w, drained, mark, patches.SetEntries("labels", m.Pod.Labels,
		[2]string{inplace.LabelRevisionHash, identity}, [2]string{inplace.LabelTemplateGeneration, ""}), why)
}
