package engine

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// order is the order of pods that the user asks for: by their nodes, and last those that go last. A pod that serves waits for those before
// it. The order in which pods get their turn is not enough: the node of a later pod may have the new image before other nodes.
type order struct {
	last  inplace.UpdateLast
	nodes inplace.NodeOrder
	// places are the places of the pods; nil if the user asks for no order.
	places map[*corev1.Pod]place
	// unbegun is a pod that is to begin before those that go last; unfinished is the first pod that is to be updated and available before
	// those on nodes of later stages. Both are nil if there is none. They are known only once sought is true.
	unbegun, unfinished *podstate.State
	sought              bool
}

// place is the place of a pod in the order that the user asks for.
type place struct {
	last  bool
	stage inplace.NodeStage
}

func (p place) compare(other place) int {
	return cmp.Or(inplace.TrueFirst(!p.last, !other.last), p.stage.Compare(other.stage))
}

// orderOf returns the order that the settings in force ask for.
func orderOf(inForce map[string]string, pods []*corev1.Pod, nodes map[string]*corev1.Node) order {
	o := order{last: inplace.UpdateLastOf(inForce), nodes: inplace.NodeOrderOf(inForce)}
	if o.last.None() && o.nodes.None() {
		return o
	}
	o.places = make(map[*corev1.Pod]place, len(pods))
	for _, pod := range pods {
		var labels map[string]string
		if node := nodes[pod.Spec.NodeName]; node != nil {
			labels = node.Labels
		}
		o.places[pod] = place{last: o.last.Has(pod), stage: o.nodes.StageOf(labels)}
	}
	return o
}

// InOrder returns the pods of the snapshot in the order in which they are updated: in the order that the user asks for, otherwise in the
// order of compare. Only labels of pods and nodes change that order.
func (u *Update) InOrder(compare func(a, b *corev1.Pod) int) []*corev1.Pod {
	return slices.SortedFunc(slices.Values(u.seen.Pods), func(a, b *corev1.Pod) int {
		return cmp.Or(u.order.places[a].compare(u.order.places[b]), compare(a, b))
	})
}

// WaitsToRestart reports whether another pod goes before the restart of this one.
func (u *Update) WaitsToRestart(s *podstate.State) bool {
	return u.WaitsForNodes(s) || u.waitsToBeLast(s)
}

// WaitsForNodes reports whether a pod on a node of an earlier stage is to be updated and available before this one restarts or is resized.
func (u *Update) WaitsForNodes(s *podstate.State) bool {
	if u.order.nodes.None() {
		return false
	}
	u.seek()
	first := u.order.unfinished
	return first != nil && u.order.places[first.Pod].compare(u.order.places[s.Pod]) < 0
}

// waitsToBeLast reports whether the pod goes last, and another pod is to begin before it.
func (u *Update) waitsToBeLast(s *podstate.State) bool {
	if !u.order.last.Has(s.Pod) {
		return false
	}
	u.seek()
	return u.order.unbegun != nil
}

// seek looks for the pods that others wait for.
func (u *Update) seek() {
	if u.order.sought {
		return
	}
	u.order.sought = true
	for _, s := range u.States {
		if !u.mayFinish(s) {
			continue
		}
		if u.order.unfinished == nil && !(s.Updated && s.Available && !s.PartiallyPatched()) {
			u.order.unfinished = s
		}
		if begun := s.Begun() || readiness.Out(s.Pod); u.order.unbegun == nil && !begun && !u.order.last.Has(s.Pod) {
			u.order.unbegun = s
		}
	}
}

// mayFinish reports whether the pod can be updated in place now. No pod waits for one that may never be.
func (u *Update) mayFinish(s *podstate.State) bool {
	stays := s.Surge || s.Kept || s.AtPartition || s.WhyReplaced() != nil
	patchable := s.Pod.Spec.NodeName != "" && u.Reachable(s.Pod)
	return !stays && patchable && !s.AwaitsCapacity()
}

// inOrder: another pod goes before this one, which is available.
func inOrder(p *Pace, s *podstate.State) *steps.Wait {
	switch {
	case !s.Available:
	case p.WaitsForNodes(s):
		first := p.order.unfinished.Pod
		node := first.Spec.NodeName
		if stage := p.order.places[first].stage.String(); stage != "" {
			node += " (" + stage + ")"
		}
		return &steps.Wait{Why: fmt.Sprintf("pod %s on node %s to be updated and available", first.Name, node)}
	case s.RestartsNext() && p.waitsToBeLast(s):
		return &steps.Wait{Why: "the restarts of all other pods to begin"}
	}
	return nil
}
