package podstate

import (
	"slices"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// GateUnseen reports whether the kubelet may be about to report the pod as not Ready for a gate that is or was closed. Native controllers
// count the pod as available until then.
func GateUnseen(pod *corev1.Pod, now time.Time) bool {
	gate := readiness.MovedGate(pod)
	if gate == nil {
		return false
	}
	known, _ := inplace.Since(gate.LastTransitionTime.Time, readiness.GateSeenAfter, now)
	return apps.IsTrue(pod, corev1.PodReady) && readiness.Closed(pod) || !readiness.Closed(pod) && !known
}

// OpenGate opens the pod's gate, so that the kubelet reports the pod Ready as soon as its containers are. All gates are opened here. Where
// the kubelet of the pod's node is unreachable, nothing else makes the pod Ready. So the gate need not wait until that kubelet is back:
// perhaps no manager runs by then.
func OpenGate(pod *corev1.Pod, unreachable bool, now time.Time) steps.SetGate {
	return openGate(pod, unreachable, now, "its containers decide")
}

func openGate(pod *corev1.Pod, unreachable bool, now time.Time, why string) steps.SetGate {
	reason := readiness.ReasonReopened
	switch {
	case unreachable:
		reason = readiness.ReasonNodeUnknown
	case readiness.Unopened(pod):
		reason = readiness.ReasonCreated
	}
	return steps.SetGate{Pod: pod, Open: true, Why: why,
		Operations: setServing(pod, corev1.ConditionTrue, reason, provedGeneration(pod, now), now)}
}

// provedGeneration returns the generation that the pod's containers are known to run, or not to run any more: the gate of a pod that was
// patched while it served may open before.
func provedGeneration(pod *corev1.Pod, now time.Time) int64 {
	if stopped, _ := readiness.MoveOf(pod).Stopped(pod, now); readiness.DrainsStopping(pod) && !stopped {
		return apps.Condition(pod, inplace.ConditionServing).ObservedGeneration
	}
	return pod.Generation
}

// CloseGate takes the pod out of service before its containers restart.
func CloseGate(pod *corev1.Pod, now time.Time, why string) steps.SetGate {
	return steps.SetGate{Pod: pod, Why: why,
		Operations: setServing(pod, corev1.ConditionFalse, readiness.ReasonUpdating, pod.Generation, now)}
}

// DrainStopping takes a pod out of service that was patched while it served: see readiness/stopping.go. It notes the generation that the
// containers still run, so that the report of the restart opens the gate as it does after a patch behind the gate.
func DrainStopping(pod *corev1.Pod, now time.Time) steps.SetGate {
	return steps.SetGate{Pod: pod, Why: "its containers are about to stop",
		Operations: setServing(pod, corev1.ConditionFalse, readiness.ReasonRestarting, pod.Generation-1, now)}
}

// setServing sets the gate. From the generation, readiness/ready.go reads whether the pod was patched since.
func setServing(pod *corev1.Pod, status corev1.ConditionStatus, reason string, generation int64, now time.Time) []jsonpatch.Operation {
	serving := corev1.PodCondition{Type: inplace.ConditionServing, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(now),
		ObservedGeneration: generation}
	conditions := readiness.WithCondition(slices.Clone(pod.Status.Conditions), serving)
	return patches.Guarded(pod, patches.SetConditions(pod.Status.Conditions, conditions)...)
}

// OpenGates opens the gates of pods that have no turn: the gates of new pods at once, closed gates as soon as that is safe.
func OpenGates(d *steps.PlanBuilder, pods []*State, turns Turns, now time.Time) {
	for _, s := range pods {
		switch {
		case readiness.AwaitsGate(s.Pod):
			d.Step(openGate(s.Pod, s.Unreachable, now, "created"))
		case readiness.Closed(s.Pod) && !turns[s] && !s.Removing:
			open, wait := s.mayOpen(now)
			d.Again(wait)
			if open {
				d.Step(openGate(s.Pod, s.Unreachable, now, whyReopen(s.Pod)))
			}
		}
	}
}

// Reopen returns the step that lets a pod whose gate is closed serve again, and whether that may be done now. It may be done at once unless
// the pod was patched since the gate closed. A surge pod that is being removed does not serve again. Unreachable says whether the kubelet
// of the pod's node is unreachable.
func Reopen(pod *corev1.Pod, unreachable bool, now time.Time) (step steps.SetGate, may bool) {
	step, may, _ = reopen(pod, unreachable, now)
	return step, may && !readiness.Removing(pod)
}

// reopen also returns how long to wait, if only time is needed.
func reopen(pod *corev1.Pod, unreachable bool, now time.Time) (step steps.SetGate, may bool, wait time.Duration) {
	s := &MarkedPod{Pod: pod, Move: readiness.MoveOf(pod)}
	may, wait = s.mayOpen(now)
	return openGate(pod, unreachable, now, whyReopen(s.Pod)), may, wait
}

// mayOpen reports whether a closed gate may open. That of a pod that was patched while it served may open at any moment.
func (s *MarkedPod) mayOpen(now time.Time) (bool, time.Duration) {
	if readiness.DrainsStopping(s.Pod) {
		return true, 0
	}
	return s.MayReopen(now)
}

// MayReopen reports whether the old containers can no longer be mistaken for the new ones. observedGeneration alone does not prove that:
// the kubelet writes it before it kills containers. A container that is not ready does not prove it either: it may be unready by chance, or
// have been unready before the patch and become ready yet. A pod serves on while it waits for capacity on its node. Where the API server
// opens gates itself, it checks the part of this that needs no clock: see readiness/ready.go.
func (s *MarkedPod) MayReopen(now time.Time) (bool, time.Duration) {
	if s.Move.RestartsToResize(s.Pod) {
		return false, 0
	}
	return s.Move.Stopped(s.Pod, now)
}

func whyReopen(pod *corev1.Pod) string {
	switch {
	case readiness.StillStopping(pod):
		return "it serves until its containers stop"
	case apps.IsTrue(pod, corev1.ContainersReady):
		return "its containers run what they should"
	}
	return "the kubelet reports it not Ready anyway"
}
