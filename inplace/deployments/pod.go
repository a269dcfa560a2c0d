package deployments

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/replicas"
)

func (v *Planner) member(pod *corev1.Pod, owner *replicas.Set) *replicas.Pod {
	return &replicas.Pod{State: v.update.StateOf(pod, v.origin(owner)), Owner: owner}
}

func (v *Planner) origin(owner *replicas.Set) podstate.PodRevision {
	from, known := v.origins[owner]
	if !known {
		from = podstate.PodRevision{Revision: owner.Rs.Name, TemplateContainers: edit.Living(&owner.Rs.Spec.Template.Decoded().Spec),
			Change:  v.changeFrom(owner.Rs),
			Updated: owner == v.NewRS, Current: v.Sets.IsCurrent(owner), ByMark: !v.seen.Mode.Manages()}
		from.NewPods = v.newPodsOf(owner, from.TemplateContainers)
		if v.NewRS != nil {
			from.UpdateHash = v.NewRS.Rs.Labels[inplace.LabelTemplateHash]
		}
		v.origins[owner] = from
	}
	return from
}
