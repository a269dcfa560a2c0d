package deployments

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/replicas"
)

func (v *View) member(pod *corev1.Pod, owner *replicas.Set) *replicas.Member {
	return &replicas.Member{State: member.StateOf(&v.Draft, pod, v.origin(owner), v.rehearsed, v.Ahead, v.Deployment.Spec.MinReadySeconds, v.Now), Owner: owner}
}

func (v *View) origin(owner *replicas.Set) member.Origin {
	from, known := v.origins[owner]
	if !known {
		from = member.Origin{Own: owner.Rs.Spec.Template.Decoded().Spec.Containers, Change: v.changeFrom(owner.Rs), OfTarget: owner == v.Target, Old: v.Old(owner)}
		v.origins[owner] = from
	}
	return from
}
