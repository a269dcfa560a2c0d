package deployments

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/replicas"
)

func (v *View) member(pod *corev1.Pod, owner *replicas.Set) *replicas.Member {
	from := member.Origin{Own: v.containersOf(owner.Rs), Change: v.changeFrom(owner.Rs), OfTarget: owner == v.Target}
	if v.Target != nil {
		from.TargetHash = v.Target.Rs.Labels[inplace.LabelTemplateHash]
	}
	return &replicas.Member{State: member.StateOf(&v.Draft, pod, from, v.rehearsed, v.Ahead, v.Deployment.Spec.MinReadySeconds, v.Now), Owner: owner}
}
