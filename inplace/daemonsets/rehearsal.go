package daemonsets

import (
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/rehearsal"
	"github.com/stayput/stayput/inplace/steps"
)

func (v *daemonView) unrehearsed() bool {
	return v.target != nil && v.rehearsed.Target == "" && v.unfinished()
}

// rehearse asks for a pod on the node of one that is to be updated.
func (v *daemonView) rehearse() member.Turns {
	turns := member.Turns{}
	for _, m := range v.members {
		turns[&m.State] = m.Restarts() && readiness.Closed(m.Pod)
	}
	v.gates(turns)
	if UnderWay(v.target) {
		v.sign()
	}
	v.Phase(steps.PhaseWaiting, rehearsal.Asking)
	for m := range v.pending() {
		if m.Needs.InPlace() {
			template := podTemplate(v.DaemonSet, v.target, m.Pod.Spec.NodeName)
			v.Result.Rehearse = &steps.Rehearse{Target: v.target.UID, Pod: rehearsal.NewPod(template, v.DaemonSet, "DaemonSet")}
			break
		}
	}
	return turns
}

func (v *daemonView) notAsRehearsed() *inplace.Reason {
	reason := v.rehearsed.Against()
	for m := range v.pending() {
		if reason == nil && m.Needs.InPlace() {
			reason = v.rehearsed.AgainstPod(m.Pod, m.Rewritten)
		}
	}
	return reason
}
