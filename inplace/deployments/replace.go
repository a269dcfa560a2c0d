package deployments

import (
	"slices"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/steps"
)

// With inplace.SurgeReplace, surge pods stay, and as many old pods go instead. While the others restart, as many more are out of service at
// a time as there are surge pods that serve. The last old pods do not restart: each surge pod that is available takes the place of one.
//
// That is one patch, which marks the old pod for removal as a surge pod is. There are as many surge replicas as before, and such an old pod
// counts first (Sets.CountSurge), so the new pod loses its own mark. From then on the old pod goes as every surge pod does. If all managers
// end in between, the native controllers do the same: they scale the old ReplicaSet down.

// staying returns how many of so many surge pods stay.
func (o *observed) staying(surge int) int {
	if o.Seen.Settings.Surge != inplace.SurgeReplace {
		return 0
	}
	return surge
}

// replaceablePods returns the pods whose place surge pods may take.
func (o *observed) replaceablePods() []*Pod {
	if o.sets.New == nil || !o.surge.used || o.surge.provedNoRoom() || o.staying(o.sets.New.Surge) == 0 {
		return nil
	}
	var pods []*Pod
	partition := o.update.Partition
	for _, m := range o.sets.Pods {
		if isReplaceable(&m.State) && partition.Take(&m.State) {
			pods = append(pods, m)
		}
	}
	return pods
}

// isReplaceable reports whether the pod serves, and its restart has yet to begin.
func isReplaceable(s *podstate.State) bool {
	return s.ToRestart() && s.Ready() && !s.PartiallyPatched()
}

// isReplaced: no more pods are left than there are surge pods.
func (p *pacer) isReplaced(_ *engine.Pace, s *podstate.State) *steps.Wait {
	if p.replaceable == 0 || p.replaceable > p.sets.New.Surge || !isReplaceable(s) {
		return nil
	}
	return &steps.Wait{Why: "a surge pod to be available and take its place"}
}

func (p *pacer) restartsInstead(_ *engine.Pace, s *podstate.State) {
	if isReplaceable(s) && p.replaceable > 0 {
		p.replaceable--
	}
}

// toReplace returns the pods whose place surge pods take now: those that are kept for that, one for each surge pod that is available. They
// wait until other pods have moved, so that it is known for which pods replicas are lowered.
func (r *surger) toReplace() []*Pod {
	pods := r.replaceablePods()
	moving := r.sets.anyPod(func(m *Pod) bool { return m.Turn && !m.Updated && !m.Surge })
	if r.paused() || moving || len(pods) == 0 || len(pods) > r.sets.New.Surge {
		return nil
	}
	pods = slices.DeleteFunc(pods, func(m *Pod) bool { return r.update.WaitsToRestart(&m.State) })
	available := r.sets.New.count(func(m *Pod) bool { return m.Surge && m.Available })
	return pods[:min(len(pods), available, r.sets.New.Surge)]
}

// replace marks those pods for removal.
func (r *surger) replace(pods []*Pod) {
	for _, m := range pods {
		r.update.Plan.Step(m.MarkForRemoval())
	}
	r.update.Plan.Phase(steps.PhaseScaling, "surge pods take the place of old pods")
}
