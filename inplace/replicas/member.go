package replicas

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/steps"
)

// Member is a live pod of a Deployment.
type Member struct {
	member.State
	Owner *Set
	// Lost: nobody would act on a patch of the pod, and it does not serve. Only another pod can take its place.
	Lost bool
}

// StatesOf are the pods as far as the kind of their workload does not matter.
func StatesOf(members []*Member) iter.Seq[*member.State] {
	return func(yield func(*member.State) bool) {
		for _, m := range members {
			if !yield(&m.State) {
				return
			}
		}
	}
}

// AnyToRestart tells whether some pod is still to restart, those borrowed or kept aside.
func AnyToRestart(members []*Member) bool {
	return slices.ContainsFunc(members, func(m *Member) bool { return m.ToRestart() })
}

// AnyComes tells whether a pod will be available within a beat.
func AnyComes(members []*Member) bool {
	return slices.ContainsFunc(members, func(m *Member) bool { return 0 < m.Comes && m.Comes <= steps.Beat })
}

// WaitsForKubelet tells whether it is not Ready and only its kubelet can do something about it. A target's, or one half-way, that was patched in the seconds
// before nobody heard of its node waits like one that has yet to be.
func (m *Member) WaitsForKubelet(isTargets bool) bool {
	waits := !isTargets && (m.ToRestart() || m.ToResize()) || (isTargets || m.IsHalfway()) && !m.Arrived && !m.Move.Observed(m.Pod)
	return waits && !m.Ready()
}

// Startable tells whether nothing but the budget keeps the pod from its turn.
func (m *Member) Startable(turns member.Turns, lacking member.Lacking) bool {
	return lacking.MayStart(&m.State) && m.ToRestart() && m.TakesTurns() && !turns[&m.State] && !m.Lost
}

// Resizable tells whether nothing but the budget keeps the pod from being given CPU and memory.
func (m *Member) Resizable(lacking member.Lacking) bool {
	return lacking.MayStart(&m.State) && m.ResizesAlive() && m.ToResize() && !m.MidResize() && !m.Lost
}

// Advance makes the pod's next write on its way to the target; drained: it had a turn.
func (m *Member) Advance(target *apps.ReplicaSet, drained bool, now time.Time) steps.PatchPod {
	w, hash := m.NextWrite(), target.Labels[inplace.LabelTemplateHash]
	switch w.Ends {
	case member.EndsHalfway:
		if w.Resizes {
			return m.Resize(w, w.Describe(m.Owner.Rs.Name, target.Name))
		}
		if w.Notes() && len(m.Move.Back) > 0 { // it stays one whose containers were restarted for another
			hash = m.Move.Hash
		}
		mark := m.Move.Next(m.Pod, hash, m.Move.Containers, w.Does, now)
		mark.Back, mark.Resize = m.Move.Leaves(w.Does.Containers, m.Own), m.Move.Noting(m.Containers, now)
		return m.Patch(w, drained, mark, nil, w.Describe(m.Owner.Rs.Name, target.Name))
	case member.EndsBack:
		return m.GoBack(now)
	case member.EndsMoved:
	}
	mark := m.Move.Next(m.Pod, hash, m.Move.Pending(m.Pod, now), w.Does, now)
	return m.Patch(w, drained, mark, m.identify(target), w.Describe(m.Owner.Rs.Name, target.Name))
}

// GoBack makes the pod again what its identity says: its CPU and memory first, which have a write of their own. With the last write it is no longer
// half-way, whether anything had to change or not.
func (m *Member) GoBack(now time.Time) steps.PatchPod {
	rs, w := m.Owner.Rs, member.Write{Does: edit.Change{Containers: m.Back}, Ends: member.EndsBack}
	if m.Back.Resizes() {
		w.Does.Containers = m.Back.Resizing()
		return m.Resize(w, w.Describe(rs.Name, rs.Name))
	}
	if m.ByTheMark {
		return m.Unmark(w, w.Describe(rs.Name, rs.Name))
	}
	mark := m.Move.Next(m.Pod, rs.Labels[inplace.LabelTemplateHash], m.Move.Containers, w.Does, now)
	return m.Patch(w, false, mark, nil, w.Describe(rs.Name, rs.Name))
}

// identify makes the pod one of the ReplicaSet: label and owner at once, so that they agree at every moment.
func (m *Member) identify(rs *apps.ReplicaSet) []jsonpatch.Operation {
	label := patches.SetEntries("labels", m.Pod.Labels, [2]string{inplace.LabelTemplateHash, rs.Labels[inplace.LabelTemplateHash]})
	return append(label, reown(m.Pod, rs)...)
}

// reown makes the ReplicaSet the pod's controller, in the place of the one it has.
func reown(pod *corev1.Pod, rs *apps.ReplicaSet) []jsonpatch.Operation {
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
