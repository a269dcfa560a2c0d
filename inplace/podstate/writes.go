package podstate

import (
	"fmt"

	"gomodules.xyz/jsonpatch/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// A pod becomes one of the update revision by writes in a fixed order. Each is made when the old containers have stopped after the one
// before. The last write sets the identity. In between, the pod is partially patched (partial.go). Stayput keeps no list of writes: what is
// left to write follows from what the pod still needs.

// Write is one of these writes.
type Write struct {
	// Does is the part of the pod's needs that the write meets.
	Does edit.Change
	Ends Outcome
	// Resizes: the write gives containers their CPU and memory, by a subresource that takes nothing else.
	Resizes bool
}

// Outcome is the state in which a write leaves the pod.
type Outcome int

// The outcomes.
const (
	EndsMoved   Outcome = iota // one of the update revision: it was the last write
	EndsPartial                // partially patched: another write follows
	EndsBack                   // as its identity has said all along
)

// Describe says what the write does to a pod of revision from that is to become one of revision to. Both are the same if the write before
// was the one that named the new revision, in the pod's mark.
func (w Write) Describe(from, to string) string {
	text := fmt.Sprintf("move from %s to %s", from, to)
	switch {
	case w.Ends == EndsBack:
		text = "back to " + to
	case w.Ends == EndsPartial:
		text = w.comes() + " before the " + text
	case from == to:
		text = "end of the move to " + to
	}
	if w.Does.None() {
		return text
	}
	return text + ", " + w.Does.String()
}

// Notes reports whether the write sets only a mark, which says what comes next.
func (w Write) Notes() bool { return w.Ends == EndsPartial && w.Does.None() }

// comes names a write that is not the last.
func (w Write) comes() string {
	switch {
	case w.Resizes:
		return "resize"
	case w.Notes():
		return "note CPU and memory"
	}
	return "restart"
}

// NextWrite returns the write to make now; there is at least one. If a pod that stays in service while its containers restart got the new
// identity first, it would count as updated while its old containers run. So they restart first. What goes along with the restart depends
// on the kind of identity: see partial.go.
//
// CPU and memory come before all that, because the node may lack capacity. The write that sets them takes neither mark nor identity
// (podResizeStrategy in pkg/registry/core/pod). So the mark comes first: if the leader dies in between, the mark says what the pod had.
func (s *Work) NextWrite() Write {
	switch needs := s.Needs(); {
	case s.Resizes() && s.Updated:
		return Write{Does: edit.Change{Containers: s.Containers.Resizing()}, Ends: EndsBack, Resizes: true}
	case s.Resizes() && s.Move.Resize.Notes(s.Containers):
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

// RestartsToResize reports whether containers restart when the pod is given CPU and memory. Then the pod must be out of service by that
// time.
func (s *Work) RestartsToResize() bool { return s.Resizes() && s.Containers.RestartsToResize() }

// ResizesAlive reports whether containers are given CPU and memory while they run.
func (s *Work) ResizesAlive() bool { return s.Resizes() && !s.RestartsToResize() }

// RestartsNext reports whether containers restart before the pod is given CPU and memory while they run.
func (s *Work) RestartsNext() bool { return s.Restarts() && !s.ResizesAlive() }

// IsCounted reports whether the pod gets CPU and memory while it is unavailable for another change already.
func (s *State) IsCounted() bool { return s.ResizesAlive() && (!s.Applied || s.Turn) }

// TakesTurns reports whether the next write restarts containers, for which the pod needs a turn.
func (s *Work) TakesTurns() bool { return !s.Resizing || s.RestartsToResize() }

// MidResize reports whether a resize has begun and is yet to be written. It continues whatever else happens.
func (s *Work) MidResize() bool {
	return s.Resizes() && (s.Updated || s.Move.Resize.Notes(s.Containers))
}

// NoRestart reports whether the next write may be made while the pod serves: the write restarts nothing, and the last patch has been
// applied.
func (s *Work) NoRestart() bool {
	return !s.Restarts() && !s.Resizing && (!s.PartiallyPatched() || s.Applied)
}

// Resize returns the patch for a write that Resizes.
func (s *Work) Resize(w Write, why string) steps.PatchPod {
	return steps.PatchPod{
		Pod: s.Pod, Resizes: true, Stops: w.Does.Containers.RestartsToResize(),
		Operations: patches.Guarded(s.Pod, w.Does.Containers.ResizeOperations(s.Pod)...), Why: why,
	}
}

// Drains reports whether the pod is out of service at the next write: the write restarts containers that the user waits for. A pod that is
// out of service stays so, even if only auxiliary containers are left to restart. A partially patched pod that was patched while it served
// goes back while it serves.
func (s *Work) Drains() bool {
	switch {
	case s.Updated:
		return false
	case readiness.Out(s.Pod):
		return s.Restarts()
	}
	return s.StaysIn == "" && s.Containers.Awaited(s.Auxiliary)
}

// Patch returns the patch for the write, with its mark and identity.
func (s *State) Patch(w Write, drained bool, mark readiness.Move, identity []jsonpatch.Operation, why string) steps.PatchPod {
	marked := s.Pod.DeepCopy()
	metav1.SetMetaDataAnnotation(&marked.ObjectMeta, inplace.AnnotationMove, mark.String())
	operations := patches.SetEntries("annotations", s.Pod.Annotations,
		[2]string{inplace.AnnotationMove, mark.String()}, [2]string{inplace.AnnotationRestarts, ""})
	operations = append(operations, w.Does.PodOperations(marked)...)
	operations = append(operations, identity...)
	return steps.PatchPod{
		Pod: s.Pod, Moves: w.Ends == EndsMoved, Drained: drained, Stops: w.Does.Containers.Restarts(), ServesOn: s.servesOn(),
		Operations: patches.Guarded(s.Pod, operations...), Why: why, TimedOut: s.TimedOut,
	}
}

// Unmark returns the patch for the write that also removes the mark.
func (s *Work) Unmark(w Write, why string) steps.PatchPod {
	operations := patches.SetEntries("annotations", s.Pod.Annotations,
		[2]string{inplace.AnnotationMove, ""}, [2]string{inplace.AnnotationRestarts, ""})
	return steps.PatchPod{Pod: s.Pod, Operations: patches.Guarded(s.Pod, append(operations, w.Does.PodOperations(s.Pod)...)...), Why: why}
}
