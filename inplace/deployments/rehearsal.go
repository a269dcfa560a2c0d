package deployments

import (
	"cmp"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/nodes"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/rehearsal"
	"github.com/stayput/stayput/inplace/steps"
)

// unrehearsed: pods are to change, and nobody knows what admission makes of new ones. While paused nothing begins.
func (v *View) unrehearsed() bool {
	return v.Target != nil && v.rehearsed.Target == "" && v.unfinished() && (!v.paused() || v.Settling())
}

// rehearse asks. Until there is an answer all stays as it is, and whose turn it is keeps it.
func (v *View) rehearse() member.Turns {
	target := v.Target.Rs
	v.Result.Rehearse = &steps.Rehearse{Target: target.UID, Pod: rehearsal.NewPod(target.Spec.Template.Tree(), target, "ReplicaSet"),
		Claims: readiness.ClaimsOf(target.Spec.Template.Typed().Spec)}
	p := pace{turns: member.Turns{}, room: v.room}
	v.keepTurns(&p, nil)
	v.gates(p.turns)
	v.rest(p)
	v.patchSets(nil) // signatures
	v.patchStatus(nil)
	v.Phase(steps.PhaseWaiting, rehearsal.Asking)
	return p.turns
}

// notAsRehearsed is why the pods cannot become in place what new ones would be, where they are; nil if they can.
func (v *View) notAsRehearsed() *inplace.Reason {
	reason := v.rehearsed.Against()
	for _, m := range v.Members {
		if reason == nil && !m.Borrowed && m.Owner != v.Target {
			reason = cmp.Or(v.rehearsed.AgainstPod(m.Pod, m.Needs(), m.Rewritten), nodes.CannotRestart(v.nodesByName[m.Pod.Spec.NodeName], m.Pod, m.Containers))
		}
		if reason == nil && !m.Borrowed && !m.Needs().InPlace() {
			reason = &m.Needs().Reasons[0]
		}
	}
	return reason
}
