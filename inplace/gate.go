package inplace

import (
	"iter"
	"slices"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Gated tells whether the pod was born with our readiness gate.
func Gated(pod *corev1.Pod) bool {
	return slices.Contains(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: ConditionServing})
}

// Unopened tells whether the pod's gate was never opened. One that is False was closed by the leader and is the leader's.
func Unopened(pod *corev1.Pod) bool { return Gated(pod) && condition(pod, ConditionServing) == nil }

// AwaitsGate tells whether the pod waits for its gate to be opened for the first time, which any replica may do. Where the API server opens
// gates itself, that comes with the kubelet's first report: see ready.go. Before it, no gate keeps the pod from anything.
func AwaitsGate(pod *corev1.Pod) bool {
	return Unopened(pod) && (condition(pod, corev1.ContainersReady) != nil || unplaced(pod))
}

// unplaced: the scheduler has found no node for the pod. It may wait for one longer than managers live.
func unplaced(pod *corev1.Pod) bool {
	scheduled := condition(pod, corev1.PodScheduled)
	return scheduled != nil && scheduled.Status == corev1.ConditionFalse
}

// gateSeenAfter is how long after its transition a gate is taken to be known to the kubelet; several times what that takes.
const gateSeenAfter = 3 * time.Second

// keptOut tells whether the kubelet itself keeps the pod out of service because its gate is closed; if it is only a matter of time, of
// how much. A pod that was not Ready anyway shows no sign of it: GeneratePodReadyCondition in pkg/kubelet/status/generate.go looks
// at the containers first. Patched before the kubelet knows, it could be reported Ready with its old containers.
func keptOut(pod *corev1.Pod, now time.Time) (bool, time.Duration) {
	gate, ready := condition(pod, ConditionServing), condition(pod, corev1.PodReady)
	switch {
	case !Closed(pod) || IsTrue(pod, corev1.PodReady):
		return false, 0
	case ready != nil && ready.Reason == reasonGatesNotReady:
		return true, 0
	}
	return since(gate.LastTransitionTime.Time, gateSeenAfter, now)
}

// reasonGatesNotReady is ReadinessGatesNotReady there.
const reasonGatesNotReady = "ReadinessGatesNotReady"

// gateUnseen tells whether the kubelet may be about to report the pod as not Ready for a gate that is or was closed: native
// controllers count it as available until then.
func gateUnseen(pod *corev1.Pod, now time.Time) bool {
	gate := movedGate(pod)
	if gate == nil {
		return false
	}
	known, _ := since(gate.LastTransitionTime.Time, gateSeenAfter, now)
	return IsTrue(pod, corev1.PodReady) && Closed(pod) || !Closed(pod) && !known
}

// movedGate returns the condition of a gate that the leader has moved; nil if it is as it was at birth.
func movedGate(pod *corev1.Pod) *corev1.PodCondition {
	gate := condition(pod, ConditionServing)
	if !Gated(pod) || gate == nil || gate.Reason == reasonBorn {
		return nil
	}
	return gate
}

// The reasons of ConditionServing.
const (
	reasonBorn     = "Serving"         // opened for the first time
	reasonReopened = "ServingAgain"    // opened after an update
	reasonUpdating = "UpdatingInPlace" // closed
)

// Closed tells whether the leader keeps the pod out of service.
func Closed(pod *corev1.Pod) bool {
	gate := condition(pod, ConditionServing)
	return Gated(pod) && gate != nil && gate.Status != corev1.ConditionTrue
}

// OpenGate lets the kubelet report the pod Ready as soon as its containers are.
func OpenGate(pod *corev1.Pod, now time.Time) SetGate {
	return openGate(pod, now, "its containers decide")
}

func openGate(pod *corev1.Pod, now time.Time, why string) SetGate {
	reason := reasonReopened
	if Unopened(pod) {
		reason = reasonBorn
	}
	return SetGate{Pod: pod, Open: true, Why: why, Operations: setServing(pod, corev1.ConditionTrue, reason, now)}
}

// closeGate takes the pod out of service before its containers restart.
func closeGate(pod *corev1.Pod, now time.Time, why string) SetGate {
	return SetGate{Pod: pod, Why: why, Operations: setServing(pod, corev1.ConditionFalse, reasonUpdating, now)}
}

func setServing(pod *corev1.Pod, status corev1.ConditionStatus, reason string, now time.Time) []jsonpatch.Operation {
	serving := corev1.PodCondition{Type: ConditionServing, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(now),
		ObservedGeneration: pod.Generation} // by which ready.go tells a pod that was patched since
	conditions := withCondition(slices.Clone(pod.Status.Conditions), serving)
	return guarded(pod, SetConditions(pod.Status.Conditions, conditions)...)
}

// openGates opens the gates of pods that have no turn: new ones at once, closed ones as soon as that is safe.
func (d *draft) openGates(pods iter.Seq[*podState], turns turns, now time.Time) {
	for s := range pods {
		switch {
		case AwaitsGate(s.pod):
			d.step(openGate(s.pod, now, "born"))
		case Closed(s.pod) && !turns[s] && !s.goes && !s.unheard:
			open, wait := s.mayReopen(now)
			d.again(wait)
			if open {
				d.step(openGate(s.pod, now, s.whyReopen()))
			}
		}
	}
}

// Reopen lets a pod whose gate is closed serve again, if that may be now: at once, unless it was patched since. One that is given back
// does not come back.
func Reopen(pod *corev1.Pod, now time.Time) (step SetGate, may bool) {
	step, may, _ = reopen(pod, now)
	return step, may && !goes(pod)
}

// reopen tells as well, if it is only a matter of time, of how much.
func reopen(pod *corev1.Pod, now time.Time) (step SetGate, may bool, wait time.Duration) {
	s := &podState{pod: pod, move: moveOf(pod)}
	may, wait = s.mayReopen(now)
	return openGate(pod, now, s.whyReopen()), may, wait
}

// mayReopen tells whether the old containers can no longer be taken for the new ones. The kubelet writes its
// observedGeneration before it kills, so that alone is no proof; neither is a container that happens to be unready, or was
// so before the patch and could get ready yet. Where the API server opens gates itself, it asks the latter half: see ready.go.
func (s *podState) mayReopen(now time.Time) (bool, time.Duration) {
	arrived, wait := s.move.arrived(s.pod, now)
	if arrived {
		return true, 0
	}
	return s.move.observed(s.pod) && s.move.followed(s.pod), wait
}

func (s *podState) whyReopen() string {
	if IsTrue(s.pod, corev1.ContainersReady) {
		return "its containers run what they should"
	}
	return "the kubelet keeps it out by itself"
}
