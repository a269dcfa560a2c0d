package inplace

import (
	"fmt"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A pod becomes one of the target by writes in a fixed order: each is made when the containers have followed the one before, and the last
// brings the identity. In between the pod is half-way (halfway.go). No list is kept anywhere: what is left to write follows from what the
// pod still needs.

// write is one of them.
type write struct {
	// does is the part of what the pod needs that it brings.
	does Change
	ends outcome
}

// outcome is where a write leaves the pod.
type outcome int

const (
	endsMoved   outcome = iota // one of the target: it was the last write
	endsHalfway                // with another to follow
	endsBack                   // what its identity has said all the time
)

// describe says what it does to a pod of one revision that another asks for.
func (w write) describe(from, to string) string {
	switch w.ends {
	case endsBack:
		return fmt.Sprintf("back to %s, %s", to, w.does)
	case endsHalfway:
		return fmt.Sprintf("restart before the move from %s to %s, %s", from, to, w.does)
	case endsMoved:
	}
	return fmt.Sprintf("move from %s to %s, %s", from, to, w.does)
}

// writes are those left to make, of which there is one at least.
func (s *podState) writes() []write {
	switch {
	case s.ofTarget:
		return []write{{s.needs, endsBack}}
	case s.needs.Restarts() && !Gated(s.pod):
		return s.inTwo()
	}
	return []write{{s.needs, endsMoved}}
}

// inTwo has containers restart first. A pod without a gate cannot be taken out of service for it: with the identity it would be counted as
// updated while its old containers serve. What goes along with them depends on what the identity is: see halfway.go.
func (s *podState) inTwo() []write {
	if s.byLabel {
		return []write{{s.needs, endsHalfway}, {Change{}, endsMoved}}
	}
	return []write{{s.needs.OfContainers(), endsHalfway}, {s.needs.OfMetadata(), endsMoved}}
}

// nextWrite is the first of them.
func (s *podState) nextWrite() write { return s.writes()[0] }

// light tells whether the next write may be made while the pod serves: nothing restarts by it, and what the last one asked for has come.
func (s *podState) light() bool {
	return !s.nextWrite().does.Restarts() && (!s.isHalfway() || s.arrived)
}

// drains tells whether the pod is taken out of service before the next write: containers restart by it, and there is a gate to close.
func (s *podState) drains() bool { return s.nextWrite().does.Restarts() && Gated(s.pod) }

// patch makes the write, with the mark and the identity that go with it.
func (s *podState) patch(w write, drained bool, mark Move, identity []jsonpatch.Operation, why string) PatchPod {
	marked, operations := s.marked(mark)
	operations = append(operations, w.does.PodOperations(marked)...)
	operations = append(operations, identity...)
	return PatchPod{Pod: s.pod, Moves: w.ends == endsMoved, Drained: drained, ServesOn: s.servesOn(), Operations: guarded(s.pod, operations...), Why: why}
}

// marked returns the pod with the mark, and the operations that put it there.
func (s *podState) marked(mark Move) (*corev1.Pod, []jsonpatch.Operation) {
	pod := s.pod.DeepCopy()
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, AnnotationMove, mark.String())
	return pod, setEntries("annotations", s.pod.Annotations, [2]string{AnnotationMove, mark.String()})
}
