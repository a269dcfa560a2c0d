package deployments

import (
	"fmt"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/steps"
)

// Pod is a live pod of a Deployment.
type Pod struct {
	podstate.State
	Owner *Set
	// ToReplace: the kubelet of the pod's node would not act on a patch of the pod, and the pod does not serve. Only another pod can take its
	// place.
	ToReplace bool
}

// WaitsForKubelet reports whether the pod is not Ready and only its kubelet can change that. A pod of the new ReplicaSet, or a partially
// patched pod, may have been patched in the seconds before its node became unreachable. It waits like a pod that is yet to be patched.
func (m *Pod) WaitsForKubelet(isUpdated bool) bool {
	if m.Ready() {
		return false
	}
	toPatch := !isUpdated && (m.ToRestart() || m.ToResize())
	patched := (isUpdated || m.PartiallyPatched()) && !m.Applied
	return toPatch || patched && !m.Move.Observed(m.Pod)
}

// Begins reports whether only others can keep the pod from its restart, or from its CPU and memory.
func (m *Pod) Begins() bool {
	restarts, resizes := m.ToRestart() && m.TakesTurns() && !m.Turn, m.ResizesAlive() && m.ToResize()
	return (restarts || resizes) && !m.MidResize() && !m.ToReplace
}

// Advance returns the patch for the pod's next write on its way to the new ReplicaSet. Drained says whether the pod had a turn.
func (m *Pod) Advance(newRS *apps.ReplicaSet, drained bool, now time.Time) steps.PatchPod {
	w, hash := m.NextWrite(), newRS.Labels[inplace.LabelTemplateHash]
	switch w.Ends {
	case podstate.EndsPartial:
		if w.Resizes {
			return m.Resize(w, w.Describe(m.Owner.Rs.Name, newRS.Name))
		}
		if w.Notes() && len(m.Move.Back) > 0 { // its mark still names the revision that its containers were restarted for
			hash = m.Move.Hash
		}
		mark := m.Move.Next(m.Pod, hash, m.Move.Containers, w.Does, now)
		mark.Back, mark.Resize = m.Move.Remaining(w.Does.Containers, m.TemplateContainers), m.Move.Resize.Noting(m.Containers, now)
		mark.Read = m.Move.Read.And(w.Does.Read)
		return m.Patch(w, drained, mark, nil, w.Describe(m.Owner.Rs.Name, newRS.Name))
	case podstate.EndsBack:
		return m.GoBack(now)
	case podstate.EndsMoved:
	}
	mark := m.Move.Next(m.Pod, hash, m.Move.Pending(m.Pod, now), w.Does, now)
	return m.Patch(w, drained, mark, identify(m.Pod, newRS), w.Describe(m.Owner.Rs.Name, newRS.Name))
}

// GoBack returns the patch that gives the pod again what its identity says: CPU and memory first, since they need a write of their own.
// After the last write the pod is no longer partially patched, whether anything had to change or not.
func (m *Pod) GoBack(now time.Time) steps.PatchPod {
	rs, w := m.Owner.Rs, podstate.Write{Does: m.BackChange(), Ends: podstate.EndsBack}
	if m.Back.Resizes() {
		w.Does.Containers = m.Back.Resizing()
		return m.Resize(w, w.Describe(rs.Name, rs.Name))
	}
	if m.ByMark {
		return m.Unmark(w, w.Describe(rs.Name, rs.Name))
	}
	mark := m.Move.Next(m.Pod, rs.Labels[inplace.LabelTemplateHash], m.Move.Containers, w.Does, now)
	return m.Patch(w, false, mark, nil, w.Describe(rs.Name, rs.Name))
}

// identify returns the operations that make the pod one of the ReplicaSet. They change label and owner at once, so that both agree at every
// moment.
func identify(pod *corev1.Pod, rs *apps.ReplicaSet) []jsonpatch.Operation {
	operations := patches.SetEntries("labels", pod.Labels, [2]string{inplace.LabelTemplateHash, rs.Labels[inplace.LabelTemplateHash]})
	for i, owner := range pod.OwnerReferences {
		if owner.Controller != nil && *owner.Controller {
			at := fmt.Sprintf("/metadata/ownerReferences/%d", i)
			return append(operations,
				jsonpatch.NewOperation("replace", at+"/name", rs.Name), jsonpatch.NewOperation("replace", at+"/uid", rs.UID))
		}
	}
	return operations
}
