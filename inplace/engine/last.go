package engine

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
)

// InOrder returns the pods of the snapshot in the order in which they are updated: those that go last come last, otherwise in the order of
// compare. Only the user's own labels of a pod change that order.
func (u *Update) InOrder(compare func(a, b *corev1.Pod) int) []*corev1.Pod {
	rank := func(pod *corev1.Pod) int {
		if u.last.Has(pod) {
			return 1
		}
		return 0
	}
	return slices.SortedFunc(slices.Values(u.seen.Pods), func(a, b *corev1.Pod) int {
		return cmp.Or(rank(a)-rank(b), compare(a, b))
	})
}

// WaitsToBeLast reports whether the pod goes last, and another pod is to begin before it. The order of the pods alone is not enough: the
// node of the pod may have the new image before other nodes.
func (u *Update) WaitsToBeLast(s *podstate.State) bool {
	if !u.last.Has(s.Pod) {
		return false
	}
	if u.othersBegin == nil {
		begin := slices.ContainsFunc(u.States, u.begins)
		u.othersBegin = &begin
	}
	return *u.othersBegin
}

// begins reports whether the pod is to begin before those that go last. A pod that may never begin does not count.
func (u *Update) begins(s *podstate.State) bool {
	switch {
	case u.last.Has(s.Pod), s.Surge, s.Updated, s.Kept, s.AtPartition:
		return false
	case s.PartiallyPatched(), readiness.Closed(s.Pod), s.WhyReplaced() != nil:
		return false
	}
	return s.Pod.Spec.NodeName != "" && u.Reachable(s.Pod)
}
