package controllerrevisions

import (
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/inplace/times"
)

// bypassed returns the first and the last pod that was created in the middle of the update without a gate; nil if there are none. The API
// server did not ask the webhooks about the creation of such a pod, and so neither about the deletion of the pod before it. That deletion
// alone shows nothing, since every user may delete a pod. Where not every new pod has a gate, a bypass is not noticed.
func (v *Planner) bypassed() (first, last *Pod) {
	if v.UpdateRevision == nil || !revisions.Updating(v.UpdateRevision) || !v.kind.Gates() {
		return nil, nil
	}
	begun := revisions.StartedAt(v.UpdateRevision.Labels[inplace.LabelUpdating])
	for _, m := range v.Live {
		created := m.Pod.CreationTimestamp
		forgotten, _ := times.Since(created.Time, podstate.BypassMemory, v.seen.Now)
		if forgotten || readiness.Gated(m.Pod) || !created.After(begun) {
			continue
		}
		if first == nil || created.Before(&first.Pod.CreationTimestamp) {
			first = m
		}
		if last == nil || last.Pod.CreationTimestamp.Before(&created) {
			last = m
		}
	}
	return first, last
}

// bypassedAgain returns why the update falls back, if there was more than one bypass; nil if there may have been only one.
func (v *Planner) bypassedAgain() *inplace.Reason {
	first, last := v.bypassed()
	if first == nil || last.Pod.CreationTimestamp.Sub(first.Pod.CreationTimestamp.Time) <= podstate.QuietAfterBypass {
		return nil
	}
	return &inplace.Reason{Code: inplace.CodeBypassed, Message: "the " + v.Update.Workload.Kind +
		" controller replaces pods although its writes should be held: the API server does not reach Stayput's webhooks"}
}

// quiet reports whether only Stayput replaces pods, as far as is known by now. If not, it sets the phase and its message.
func (v *Planner) quiet() bool {
	_, last := v.bypassed()
	if last == nil {
		return true
	}
	v.plan.Result.Bypassed = "pod " + last.Pod.Name + " was created without its readiness gate"
	quiet, wait := times.Since(last.Pod.CreationTimestamp.Time, podstate.QuietAfterBypass, v.seen.Now)
	if !quiet {
		v.plan.Again(wait)
		v.plan.Phase(steps.PhaseWaiting, v.plan.Result.Bypassed)
	}
	return quiet
}
