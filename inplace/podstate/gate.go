package podstate

import (
	"iter"
	"slices"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/inplace/times"
)

// GateUnseen reports whether the kubelet may be about to report the pod as not Ready for a gate that is or was closed: native
// controllers count it as available until then.
func GateUnseen(pod *corev1.Pod, now time.Time) bool {
	gate := readiness.MovedGate(pod)
	if gate == nil {
		return false
	}
	known, _ := times.Since(gate.LastTransitionTime.Time, readiness.GateSeenAfter, now)
	return conditions.IsTrue(pod, corev1.PodReady) && readiness.Closed(pod) || !readiness.Closed(pod) && !known
}

// OpenGate lets the kubelet report the pod Ready as soon as its containers are. Every gate is opened here. Where the kubelet of the pod's node is silent,
// nothing else makes the pod Ready; so a gate need not wait until that kubelet is back, when perhaps no manager runs.
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
	return steps.SetGate{Pod: pod, Open: true, Why: why, Operations: setServing(pod, corev1.ConditionTrue, reason, now)}
}

// CloseGate takes the pod out of service before its containers restart.
func CloseGate(pod *corev1.Pod, now time.Time, why string) steps.SetGate {
	return steps.SetGate{Pod: pod, Why: why, Operations: setServing(pod, corev1.ConditionFalse, readiness.ReasonUpdating, now)}
}

func setServing(pod *corev1.Pod, status corev1.ConditionStatus, reason string, now time.Time) []jsonpatch.Operation {
	serving := corev1.PodCondition{Type: inplace.ConditionServing, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(now),
		ObservedGeneration: pod.Generation} // by which readiness/ready.go tells a pod that was patched since
	conditions := readiness.WithCondition(slices.Clone(pod.Status.Conditions), serving)
	return patches.Guarded(pod, patches.SetConditions(pod.Status.Conditions, conditions)...)
}

// OpenGates opens the gates of pods that have no turn: new ones at once, closed ones as soon as that is safe.
func OpenGates(d *steps.PlanBuilder, pods iter.Seq[*State], turns Turns, now time.Time) {
	for s := range pods {
		switch {
		case readiness.AwaitsGate(s.Pod):
			d.Step(openGate(s.Pod, s.Unreachable, now, "created"))
		case readiness.Closed(s.Pod) && !turns[s] && !s.Removing:
			open, wait := s.MayReopen(now)
			d.Again(wait)
			if open {
				d.Step(openGate(s.Pod, s.Unreachable, now, s.whyReopen()))
			}
		}
	}
}

// Reopen lets a pod whose gate is closed serve again, if that may be now: at once, unless it was patched since. One that is given back
// does not come back. Silent is what is known of its node's kubelet.
func Reopen(pod *corev1.Pod, unreachable bool, now time.Time) (step steps.SetGate, may bool) {
	step, may, _ = reopen(pod, unreachable, now)
	return step, may && !readiness.Removing(pod)
}

// reopen tells as well, if it is only a matter of time, of how much.
func reopen(pod *corev1.Pod, unreachable bool, now time.Time) (step steps.SetGate, may bool, wait time.Duration) {
	s := &State{Pod: pod, Move: readiness.MoveOf(pod)}
	may, wait = s.MayReopen(now)
	return openGate(pod, unreachable, now, s.whyReopen()), may, wait
}

// MayReopen reports whether the old containers can no longer be taken for the new ones. The kubelet writes its
// observedGeneration before it kills, so that alone is no proof; neither is a container that happens to be unready, or was
// so before the patch and could get ready yet. While it waits for room on its node a pod serves on. Where the API server opens gates itself, it asks
// what of that needs no clock: see readiness/ready.go.
func (s *State) MayReopen(now time.Time) (bool, time.Duration) {
	if s.Move.RestartsToResize(s.Pod) {
		return false, 0
	}
	return s.Move.Stopped(s.Pod, now)
}

func (s *State) whyReopen() string {
	if conditions.IsTrue(s.Pod, corev1.ContainersReady) {
		return "its containers run what they should"
	}
	return "the kubelet keeps it out by itself"
}
