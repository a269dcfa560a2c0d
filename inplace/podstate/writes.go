package podstate

import (
	"fmt"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// A pod becomes one of the target by writes in a fixed order: each is made when the containers have followed the one before, and the last
// brings the identity. In between the pod is half-way (halfway.go). No list is kept anywhere: what is left to write follows from what the
// pod still needs.

// Write is one of them.
type Write struct {
	// Does is the part of what the pod needs that it brings.
	Does edit.Change
	Ends Outcome
	// Resizes: it gives containers their CPU and memory, by a subresource that takes nothing else.
	Resizes bool
}

// Outcome is where a write leaves the pod.
type Outcome int

// Where it may leave it.
const (
	EndsMoved   Outcome = iota // one of the target: it was the last write
	EndsPartial                // with another to follow
	EndsBack                   // what its identity has said all the time
)

// Describe says what it does to a pod of one revision that another asks for.
func (w Write) Describe(from, to string) string {
	switch w.Ends {
	case EndsBack:
		return fmt.Sprintf("back to %s, %s", to, w.Does)
	case EndsPartial:
		return fmt.Sprintf("%s before the move from %s to %s, %s", w.comes(), from, to, w.Does)
	case EndsMoved:
	}
	return fmt.Sprintf("move from %s to %s, %s", from, to, w.Does)
}

// Notes reports whether it brings a mark alone, of what comes next.
func (w Write) Notes() bool { return w.Ends == EndsPartial && w.Does.None() }

// comes is what comes before the last write.
func (w Write) comes() string {
	switch {
	case w.Resizes:
		return "resize"
	case w.Notes():
		return "note what it has"
	}
	return "restart"
}

// NextWrite is the one to make now; there is one at least. With the identity a pod that is not taken out of service while its containers restart
// would be counted as updated while the old ones run. So they restart first. What goes along with them depends on what the identity is: see
// halfway.go.
//
// CPU and memory come before all that, since a node may have no room. Their write takes neither mark nor identity
// (podResizeStrategy in pkg/registry/core/pod). So the mark goes first: if we die in between, it says what the pod had.
func (s *State) NextWrite() Write {
	switch needs := s.Needs(); {
	case s.Resizes() && s.Updated:
		return Write{Does: edit.Change{Containers: s.Containers.Resizing()}, Ends: EndsBack, Resizes: true}
	case s.Resizes() && s.notedSurge():
		return Write{Does: edit.Change{Containers: s.Containers.Resizing()}, Ends: EndsPartial, Resizes: true}
	case s.Resizes():
		return Write{Ends: EndsPartial}
	case s.Updated:
		return Write{Does: needs, Ends: EndsBack}
	case !s.Restarts() || s.Drains():
		return Write{Does: needs, Ends: EndsMoved}
	case s.ByLabel:
		return Write{Does: needs, Ends: EndsPartial}
	default:
		return Write{Does: needs.OfContainers(), Ends: EndsPartial}
	}
}

// notedSurge reports whether the pod shows what is to become of its CPU and memory, so that they may be written.
func (s *State) notedSurge() bool { return s.Move.Notes(s.Containers) }

// RestartsToResize reports whether containers restart when the pod is given CPU and memory, so that it must be out of service by then.
func (s *State) RestartsToResize() bool { return s.Resizes() && s.Containers.RestartsToResize() }

// ResizesAlive reports whether containers are given CPU and memory while they run.
func (s *State) ResizesAlive() bool { return s.Resizes() && !s.RestartsToResize() }

// TakesTurns reports whether what restarts is what comes next, for which the pod needs a turn.
func (s *State) TakesTurns() bool { return !s.Resizing || s.RestartsToResize() }

// MidResize reports whether a resize was begun that is to be written yet. That goes on whatever else is the matter.
func (s *State) MidResize() bool { return s.Resizes() && (s.Updated || s.notedSurge()) }

// NoRestart reports whether the next write may be made while the pod serves: nothing restarts by it, and what the last one asked for has come.
func (s *State) NoRestart() bool {
	return !s.Restarts() && !s.Resizing && (!s.PartiallyPatched() || s.Applied)
}

// Resize makes a write that Resizes.
func (s *State) Resize(w Write, why string) steps.PatchPod {
	return steps.PatchPod{Pod: s.Pod, Resizes: true, Operations: patches.Guarded(s.Pod, w.Does.Containers.ResizeOperations(s.Pod)...), Why: why}
}

// Drains reports whether the pod is out of service at the next write: containers restart by it that somebody waits for, and there is a gate to
// close. One that is closed stays so, whatever nobody waits for by now; and what a pod got while it served it gives back so.
func (s *State) Drains() bool {
	return readiness.Gated(s.Pod) && !s.Updated && (s.awaited() || s.Restarts() && readiness.Closed(s.Pod))
}

// awaited reports whether somebody waits for a container that is to restart. Who asks for a restart as such does: that it has come shows by a gate.
func (s *State) awaited() bool {
	for change := range s.Containers.Restarting() {
		if change.Restart || !s.Auxiliary.Has(change.Container) {
			return true
		}
	}
	return false
}

// Patch makes the write, with the mark and the identity that go with it.
func (s *State) Patch(w Write, drained bool, mark readiness.Move, identity []jsonpatch.Operation, why string) steps.PatchPod {
	marked, operations := s.marked(mark)
	operations = append(operations, w.Does.PodOperations(marked)...)
	operations = append(operations, identity...)
	return steps.PatchPod{Pod: s.Pod, Moves: w.Ends == EndsMoved, Drained: drained, ServesOn: s.servesOn(), Operations: patches.Guarded(s.Pod, operations...), Why: why}
}

// Unmark makes the write and takes the mark off.
func (s *State) Unmark(w Write, why string) steps.PatchPod {
	operations := patches.SetEntries("annotations", s.Pod.Annotations, [2]string{inplace.AnnotationMove, ""}, [2]string{inplace.AnnotationRestarts, ""})
	return steps.PatchPod{Pod: s.Pod, Operations: patches.Guarded(s.Pod, append(operations, w.Does.PodOperations(s.Pod)...)...), Why: why}
}

// marked returns the pod with the mark, and the operations that put it there.
func (s *State) marked(mark readiness.Move) (*corev1.Pod, []jsonpatch.Operation) {
	pod := s.Pod.DeepCopy()
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, inplace.AnnotationMove, mark.String())
	return pod, patches.SetEntries("annotations", s.Pod.Annotations, [2]string{inplace.AnnotationMove, mark.String()}, [2]string{inplace.AnnotationRestarts, ""})
}
