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
)

// MarkedPod is a pod, the mark of its move, and the revision that its identity names: what a State is found out from.
type MarkedPod struct {
	Pod  *corev1.Pod
	Move readiness.Move
	PodRevision
}

// Work is a pod and what is left to write in it.
type Work struct {
	MarkedPod
	// Auxiliary are the containers that the user does not wait for.
	Auxiliary inplace.Auxiliary
	// Containers are the changes left to do in the pod's containers until the pod is one of the update revision: see Needs.
	Containers edit.ContainerChanges
	// Back are the changes that give the pod's containers again what its identity says; nothing unless the pod is partially patched.
	Back edit.ContainerChanges
	// Applied: the kubelet has carried out the last patch.
	Applied bool
	// Resizing: the pod's containers have not yet got their CPU and memory, whether they are written already or not. Stayput does nothing else
	// to the pod until then.
	Resizing bool
	// StaysIn is why the pod serves until its containers stop, one clause; empty if it is taken out of service before.
	StaysIn string
	// unrestartable is why the pod cannot take a change that other pods of its revision can; nil if it can.
	unrestartable *inplace.Reason
	// oldStopped: none of the pod's containers can be the one that the last patch was to stop.
	oldStopped bool
}

// State is a live pod and what an update needs of it, for any kind of workload.
type State struct {
	Work
	// Rewritten are the containers whose images come neither from their template nor from Stayput's patches: admission has changed them.
	Rewritten edit.ContainerChanges
	// Available: the pod is available as natively (Ready for minReadySeconds), is not being drained, no longer runs what it ran before a
	// patch, and its Ready has lasted.
	Available bool
	// Serving is the same without minReadySeconds.
	Serving bool
	// AvailableIn is the time until the pod is available, if only time is needed; 0 if more is needed, or if the pod is available already.
	AvailableIn time.Duration
	// Unproved is for how much longer a startup probe may revoke that the pod is Ready; 0 if none can: see readiness.ProvedStarted.
	Unproved time.Duration
	// Infeasible is why the pod's node cannot give it the update revision's CPU and memory; empty if it may. Stayput leaves such a pod alone,
	// and the pod serves on: see NotResized.
	Infeasible string
	// Unreachable: the kubelet of the pod's node does not report. So no kubelet acts on a patch of the pod, and its status does not say
	// whether it serves.
	Unreachable bool
	// Hooks are the pre-restart hooks that the pod still has, if it is out of service. HeldFor is for how much longer they hold it; 0 if they
	// no longer do. Then TimedOut says so, in one clause.
	Hooks    inplace.Hooks
	HeldFor  time.Duration
	TimedOut string
	// Lacks is what the pod waits for until the new images are on its node, as far as they can be pulled first; empty if for nothing.
	Lacks string
	// Turn: the pod is out of service because Stayput patches it next.
	Turn bool
	// Surge: the pod exists only while others are updated. Removing: this surge pod is being removed.
	Surge, Removing bool
	// Kept: the workload's own partition keeps the pod as it is, with Stayput or without.
	Kept bool
	// AtPartition: a partition keeps the pod as it is; see Kept and PartitionBudgetOf.
	AtPartition bool
}

// StateOf returns the state of a pod whose identity names that origin.
func StateOf(
	d *steps.PlanBuilder, pod *corev1.Pod, from PodRevision, update dryrun.NewPods, minReadySeconds int32, now time.Time,
) State {
	marked := MarkedPod{Pod: pod, Move: readiness.MoveOf(pod), PodRevision: from}
	back := marked.revert()
	s := State{
		Work:      Work{MarkedPod: marked, Back: back, Containers: marked.stillDiffer(update, back)},
		Rewritten: marked.rewrites(),
		Surge:     pod.Annotations[inplace.AnnotationSurgePod] != "", Removing: readiness.Removing(pod),
	}
	s.Resizing = s.Resizes() || len(s.Move.Resize) > 0 && !s.Move.Resized(pod)
	unrestartable, tells := s.whyUnrestartable(now)
	s.unrestartable = unrestartable
	d.Again(tells)
	applied, wait := s.Move.Applied(pod, now)
	// A pod that waits for capacity is unchanged, unless a container restarts as soon as there is capacity.
	unchanged := applied && s.Move.AwaitsCapacity(pod) && (!s.Move.Resize.Restarts() || s.Move.Refused(pod) != "")
	applied = applied && !s.resizeInProgress()
	available, later := s.Move.AvailableAt(pod, minReadySeconds, now)
	started, longer := readiness.ProvedStarted(pod, now)
	s.Unproved = longer
	s.oldStopped, _ = s.Move.Stopped(pod, now)
	s.Applied, s.Serving = applied, s.Ready() && (applied || unchanged) && started
	s.Available = s.Serving && available
	d.Again(inplace.Sooner(wait, inplace.Sooner(later, longer)))
	if applied && s.Ready() {
		s.AvailableIn = max(later, longer)
	}
	return s
}

// Annotated returns the patch that sets those annotations of the pod; an empty value removes one.
func (s *MarkedPod) Annotated(why string, entries ...[2]string) steps.PatchPod {
	return steps.PatchPod{
		Pod: s.Pod, Operations: patches.Guarded(s.Pod, patches.SetEntries("annotations", s.Pod.Annotations, entries...)...), Why: why,
	}
}
