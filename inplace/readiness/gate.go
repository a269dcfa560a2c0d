package readiness

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/times"
)

// Gated reports whether the pod was born with our readiness gate.
func Gated(pod *corev1.Pod) bool {
	return slices.Contains(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: inplace.ConditionServing})
}

// Unopened reports whether the pod's gate was never opened. One that is False was closed by the leader and is the leader's.
func Unopened(pod *corev1.Pod) bool {
	return Gated(pod) && conditions.Condition(pod, inplace.ConditionServing) == nil
}

// AwaitsGate reports whether the pod waits for its gate to be opened for the first time, which any replica may do. Where the API server opens
// gates itself, that comes with the kubelet's first report: see ready.go. Before it, no gate keeps the pod from anything.
func AwaitsGate(pod *corev1.Pod) bool {
	return Unopened(pod) && (conditions.Condition(pod, corev1.ContainersReady) != nil || unplaced(pod))
}

// unplaced: the scheduler has found no node for the pod. It may wait for one longer than managers live.
func unplaced(pod *corev1.Pod) bool {
	scheduled := conditions.Condition(pod, corev1.PodScheduled)
	return scheduled != nil && scheduled.Status == corev1.ConditionFalse
}

// GateSeenAfter is how long after its transition a gate is taken to be known to the kubelet; several times what that takes.
const GateSeenAfter = 3 * time.Second

// KeptOut reports whether the kubelet itself keeps the pod out of service because its gate is closed; if it is only a matter of time, of
// how much. A pod that was not Ready anyway shows no sign of it: GeneratePodReadyCondition in pkg/kubelet/status/generate.go looks
// at the containers first. Patched before the kubelet knows, it could be reported Ready with its old containers. One whose gate was open a moment before
// may show the sign of the time before that: see Reopening.
func KeptOut(pod *corev1.Pod, now time.Time) (bool, time.Duration) {
	gate, ready := conditions.Condition(pod, inplace.ConditionServing), conditions.Condition(pod, corev1.PodReady)
	switch {
	case !Closed(pod) || conditions.IsTrue(pod, corev1.PodReady):
		return false, 0
	case ready != nil && ready.Reason == ReasonGatesNotReady:
		return true, 0
	}
	return times.Since(gate.LastTransitionTime.Time, GateSeenAfter, now)
}

// Reopening reports whether the kubelet has yet to report what it makes of a gate that was opened again; for how much longer that is waited for. Until then
// the pod is not Ready for the gate that was closed before.
func Reopening(pod *corev1.Pod, now time.Time) (bool, time.Duration) {
	gate, ready := MovedGate(pod), conditions.Condition(pod, corev1.PodReady)
	if gate == nil || gate.Status != corev1.ConditionTrue || ready == nil || ready.Reason != ReasonGatesNotReady {
		return false, 0
	}
	known, wait := times.Since(gate.LastTransitionTime.Time, GateSeenAfter, now)
	return !known, wait
}

// ReasonGatesNotReady is ReadinessGatesNotReady there.
const ReasonGatesNotReady = "ReadinessGatesNotReady"

// MovedGate returns the condition of a gate that the leader has moved; nil if it is as it was at birth.
func MovedGate(pod *corev1.Pod) *corev1.PodCondition {
	gate := conditions.Condition(pod, inplace.ConditionServing)
	if !Gated(pod) || gate == nil || gate.Reason == ReasonCreated {
		return nil
	}
	return gate
}

// The reasons of ConditionServing.
const (
	ReasonCreated  = "Serving"         // opened for the first time
	ReasonReopened = "ServingAgain"    // opened after an update
	ReasonUpdating = "UpdatingInPlace" // closed
	// ReasonNodeUnknown is that of a gate that was opened while the kubelet of the pod's node was silent, in the word of that node's Ready. The pod is
	// Ready when that kubelet says so, and not before: see ready.go.
	ReasonNodeUnknown = "NodeStatusUnknown"
)

// Closed reports whether the leader keeps the pod out of service.
func Closed(pod *corev1.Pod) bool {
	gate := conditions.Condition(pod, inplace.ConditionServing)
	return Gated(pod) && gate != nil && gate.Status != corev1.ConditionTrue
}
