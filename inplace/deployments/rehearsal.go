package deployments

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/nodes"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/rehearsal"
	"github.com/stayput/stayput/inplace/replicas"
	"github.com/stayput/stayput/inplace/steps"
)

// unrehearsed: pods are to change, and nobody knows what admission makes of new ones. While paused nothing begins, but pods go back.
func (v *View) unrehearsed() bool {
	return v.Target != nil && v.rehearsed.Target == "" && v.unfinished() && (!v.paused() || v.Settling() || v.anyHalfway())
}

func (v *View) anyHalfway() bool {
	return slices.ContainsFunc(v.Members, func(m *replicas.Member) bool { return m.IsHalfway() })
}

// rehearse asks. Until there is an answer all stays as it is, and whose turn it is keeps it.
func (v *View) rehearse() member.Turns {
	v.Result.Rehearse = newPodOf(v.Target.Rs)
	v.Result.Rehearse.Claims = readiness.ClaimsOf(v.Target.Rs.Spec.Template.Typed().Spec)
	p := pace{turns: member.Turns{}, room: v.room}
	v.keepTurns(&p, nil)
	v.gates(p.turns)
	v.rest(p)
	v.patchSets(nil) // signatures
	v.patchStatus(nil)
	v.Phase(steps.PhaseWaiting, rehearsal.Asking)
	return p.turns
}

func newPodOf(rs *apps.ReplicaSet) *steps.Rehearse {
	return &steps.Rehearse{Target: rs.UID, Pod: rehearsal.NewPod(rs.Spec.Template.Tree(), rs, "ReplicaSet")}
}

// born is what is known of new pods of a ReplicaSet with those containers.
func (v *View) born(owner *replicas.Set, own []corev1.Container) rehearsal.Rehearsed {
	if owner == v.Target && v.rehearsed.Target != "" {
		return v.rehearsed
	}
	known := v.Own
	if known.Target == "" && known.Unknown != "" {
		known.Target = owner.Rs.UID
	}
	return known.Of(owner.Rs.UID, owner.Rs.Spec.Template, own)
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
