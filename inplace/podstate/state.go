package podstate

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/inplace/times"
)

// State is a live pod, and what an update needs of it, whatever the kind of its workload.
type State struct {
	Pod  *corev1.Pod
	Move readiness.Move
	Origin
	// Auxiliary are the containers that nobody waits for.
	Auxiliary inplace.Auxiliary
	// Containers are what is left to do in its containers until it is one of the target: see Needs.
	Containers edit.ContainerChanges
	// Back is what makes its containers again what its identity says; nothing unless it is half-way.
	Back edit.ContainerChanges
	// Rewritten are its containers with images that neither their template nor our patches have given them: admission has changed those.
	Rewritten edit.ContainerChanges
	// Available as natively (Ready for minReadySeconds), neither being drained nor still what it was before a patch, and not for a moment only.
	Available bool
	// AvailableIn is when it will be available if that is only a matter of time; 0 if it is not, or is already.
	AvailableIn time.Duration
	// unrestartable is why it cannot take a change that others of its revision can; nil if it can.
	unrestartable *inplace.Reason
	// Applied: its containers have followed the last patch.
	Applied bool
	// Infeasible is why its node cannot give it the CPU and memory that the target has; empty if it may. Such a pod is left alone, and serves on: see NotResized.
	Infeasible string
	// Resizing: its containers have not yet got their CPU and memory, written or not. Nothing else is done to it until then.
	Resizing bool
	// oldStopped: none of its containers can be the one that was to stop for the last patch.
	oldStopped bool
	// Unreachable: the kubelet of its node does not report, so that nothing acts on what becomes of the pod, and nothing says whether it serves.
	Unreachable bool
	// Surge: it exists only while others are updated. Goes: it is given back.
	Surge, Removing bool
	// AtPartition: a partition keeps it as it is; see RoomOf.
	AtPartition bool
}

// StateOf looks at a pod of that origin.
func StateOf(d *steps.PlanBuilder, pod *corev1.Pod, from Origin, update dryrun.NewPods, ahead readiness.Ahead, minReadySeconds int32, now time.Time) State {
	s := State{Pod: pod, Move: readiness.MoveOf(pod), Origin: from, Surge: pod.Annotations[inplace.AnnotationSurgePod] != "", Removing: readiness.Removing(pod)}
	s.Back = s.wayBack()
	s.Containers, s.Rewritten = s.stillDiffer(update.Containers), s.rewrites()
	s.Resizing = s.Resizes() || len(s.Move.Resize) > 0 && !s.Move.Resized(pod)
	unrestartable, tells := s.whyUnrestartable(now)
	s.unrestartable = unrestartable
	d.Again(tells)
	applied, wait := s.Move.Applied(pod, now)
	unchanged := applied && s.Move.AwaitsCapacity(pod) && (!s.Move.Renews() || s.Move.Refused(pod) != "") // else it restarts whenever there is room
	applied = applied && (len(s.Move.Resize) == 0 || !s.Resizing)
	available, later := readiness.AvailableAt(pod, minReadySeconds, now)
	lasting, longer := ahead.Lasting(pod, now)
	s.oldStopped, _ = s.MayReopen(now)
	s.Applied, s.Available = applied, available && (applied || unchanged) && lasting && !readiness.Closed(pod)
	d.Again(times.Sooner(wait, times.Sooner(later, longer)))
	if applied && !readiness.Closed(pod) {
		s.AvailableIn = max(later, longer)
	}
	return s
}

// Annotated is the patch that gives the pod those annotations; an empty value takes one off.
func (s *State) Annotated(why string, entries ...[2]string) steps.PatchPod {
	return steps.PatchPod{Pod: s.Pod, Operations: patches.Guarded(s.Pod, patches.SetEntries("annotations", s.Pod.Annotations, entries...)...), Why: why}
}
