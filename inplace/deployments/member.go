package deployments

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/replicas"
)

func (v *View) member(pod *corev1.Pod, owner *replicas.Set) *replicas.Member {
	m := &replicas.Member{State: member.StateOf(&v.Draft, pod, v.origin(owner), v.rehearsed, v.Ahead, v.Deployment.Spec.MinReadySeconds, v.Now), Owner: owner}
	m.Auxiliary, m.Unfit = v.auxiliary, m.WhyUnfit(v.nodesByName[pod.Spec.NodeName])
	return m
}

func (v *View) origin(owner *replicas.Set) member.Origin {
	from, known := v.origins[owner]
	if !known {
		from = member.Origin{Own: edit.Living(&owner.Rs.Spec.Template.Decoded().Spec), Change: v.changeFrom(owner.Rs), OfTarget: owner == v.Target, Old: v.Old(owner),
			ByTheMark: !v.Mode.Manages()}
		from.Born = v.born(owner, from.Own)
		if v.Target != nil {
			from.TargetHash = v.Target.Rs.Labels[inplace.LabelTemplateHash]
		}
		v.origins[owner] = from
	}
	return from
}
