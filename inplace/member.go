package inplace

import (
	"fmt"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
)

// member is a live pod of a Deployment.
type member struct {
	podState
	owner *replicaSet
	// lost: nobody would act on a patch of the pod, and it does not serve. Only another pod can take its place.
	lost bool
}

func (v *view) member(pod *corev1.Pod, owner *replicaSet) *member {
	from := origin{own: v.containersOf(owner.rs), change: v.changeFrom(owner.rs), ofTarget: owner == v.target}
	return &member{podState: v.state(pod, from, v.rehearsed, v.Ahead, v.Deployment.Spec.MinReadySeconds, v.Now), owner: owner}
}

// advance makes the pod's next write on its way to the target; drained: it had a turn.
func (m *member) advance(target *ReplicaSet, drained bool, now time.Time) PatchPod {
	w, hash := m.nextWrite(), target.Labels[labelTemplateHash]
	switch w.ends {
	case endsHalfway:
		mark := m.move.next(m.pod, hash, m.move.Containers, w.does, now)
		mark.Back = m.move.leaves(w.does)
		return m.patch(w, drained, mark, nil, w.describe(m.owner.rs.Name, target.Name))
	case endsBack:
		return m.goBack(now)
	case endsMoved:
	}
	mark := m.move.next(m.pod, hash, m.move.pending(m.pod, now), w.does, now)
	return m.patch(w, drained, mark, m.identify(target), w.describe(m.owner.rs.Name, target.Name))
}

// goBack makes the pod again what its identity says.
func (m *member) goBack(now time.Time) PatchPod {
	rs, w := m.owner.rs, write{does: m.back, ends: endsBack}
	mark := m.move.next(m.pod, rs.Labels[labelTemplateHash], m.move.Containers, w.does, now)
	return m.patch(w, false, mark, nil, w.describe(rs.Name, rs.Name))
}

// identify makes the pod one of the ReplicaSet: label and owner at once, so that they agree at every moment.
func (m *member) identify(rs *ReplicaSet) []jsonpatch.Operation {
	label := setEntries("labels", m.pod.Labels, [2]string{labelTemplateHash, rs.Labels[labelTemplateHash]})
	return append(label, reown(m.pod, rs)...)
}

// reown makes the ReplicaSet the pod's controller, in the place of the one it has.
func reown(pod *corev1.Pod, rs *ReplicaSet) []jsonpatch.Operation {
	for i, owner := range pod.OwnerReferences {
		if owner.Controller != nil && *owner.Controller {
			at := fmt.Sprintf("/metadata/ownerReferences/%d", i)
			return []jsonpatch.Operation{
				jsonpatch.NewOperation("replace", at+"/name", rs.Name),
				jsonpatch.NewOperation("replace", at+"/uid", rs.UID),
			}
		}
	}
	return nil
}
