package readiness

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

// Gated reports whether the pod was created with Stayput's readiness gate.
func Gated(pod *corev1.Pod) bool {
	return slices.Contains(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: inplace.ConditionServing})
}

// Unopened reports whether the pod's gate was never opened. A gate that is False was closed by the leader, and only the leader
// opens it.
func Unopened(pod *corev1.Pod) bool {
	return Gated(pod) && apps.Condition(pod, inplace.ConditionServing) == nil
}

// AwaitsGate reports whether the pod waits for its gate to be opened for the first time. Any replica of the manager may open it. If
// the API server opens gates itself, the gate opens with the kubelet's first report: see ready.go. Before that report, no gate
// keeps the pod from anything.
func AwaitsGate(pod *corev1.Pod) bool {
	return Unopened(pod) && (apps.Condition(pod, corev1.ContainersReady) != nil || unplaced(pod))
}

// unplaced reports whether the scheduler has found no node for the pod. The pod may wait for a node longer than the managers live.
func unplaced(pod *corev1.Pod) bool {
	scheduled := apps.Condition(pod, corev1.PodScheduled)
	return scheduled != nil && scheduled.Status == corev1.ConditionFalse
}

// GateSeenAfter is how long after its transition a gate counts as known to the kubelet. It is several times the usual delay.
const GateSeenAfter = 3 * time.Second

// KeptOut reports whether the kubelet itself keeps the pod out of service because its gate is closed. If only time is missing, it
// returns how much. A pod that was not Ready anyway shows no sign of the gate: GeneratePodReadyCondition in
// pkg/kubelet/status/generate.go looks at the containers first. If such a pod were patched before the kubelet knows of the gate,
// the kubelet could report it Ready with its old containers. A pod whose gate was open a moment before may show the sign of an
// earlier closing: see Reopening.
func KeptOut(pod *corev1.Pod, now time.Time) (bool, time.Duration) {
	gate, ready := apps.Condition(pod, inplace.ConditionServing), apps.Condition(pod, corev1.PodReady)
	switch {
	case !Closed(pod) || apps.IsTrue(pod, corev1.PodReady):
		return false, 0
	case ready != nil && ready.Reason == ReasonGatesNotReady:
		return true, 0
	}
	return inplace.Since(gate.LastTransitionTime.Time, GateSeenAfter, now)
}

// Reopening reports whether the kubelet has yet to report the effect of a gate that was opened again. It also returns how much
// longer to wait for that. Until then the pod is not Ready because of the gate that was closed before.
func Reopening(pod *corev1.Pod, now time.Time) (bool, time.Duration) {
	gate, ready := MovedGate(pod), apps.Condition(pod, corev1.PodReady)
	if gate == nil || gate.Status != corev1.ConditionTrue || ready == nil || ready.Reason != ReasonGatesNotReady {
		return false, 0
	}
	known, wait := inplace.Since(gate.LastTransitionTime.Time, GateSeenAfter, now)
	return !known, wait
}

// ReasonGatesNotReady is ReadinessGatesNotReady in pkg/kubelet/status/generate.go.
const ReasonGatesNotReady = "ReadinessGatesNotReady"

// ClosedAt returns when the gate of the pod, which is closed, did so.
func ClosedAt(pod *corev1.Pod) time.Time {
	return apps.Condition(pod, inplace.ConditionServing).LastTransitionTime.Time
}

// MovedGate returns the condition of a gate that the leader has moved. It is nil if the gate is as it was at creation.
func MovedGate(pod *corev1.Pod) *corev1.PodCondition {
	gate := apps.Condition(pod, inplace.ConditionServing)
	if !Gated(pod) || gate == nil || gate.Reason == ReasonCreated {
		return nil
	}
	return gate
}

// These are the reasons of ConditionServing.
const (
	ReasonCreated  = "Serving"         // opened for the first time
	ReasonReopened = "ServingAgain"    // opened after an update
	ReasonUpdating = "UpdatingInPlace" // closed before the pod is patched
	// ReasonRestarting is the reason of a gate that was closed after the pod was patched: see stopping.go.
	ReasonRestarting = "RestartingInPlace"
	// ReasonNodeUnknown is the reason of a gate that was opened while the pod's node was unreachable. It is the reason of that node's
	// condition Ready. The pod becomes Ready when that kubelet says so, and not before: see ready.go.
	ReasonNodeUnknown = "NodeStatusUnknown"
)

// Closed reports whether the leader keeps the pod out of service.
func Closed(pod *corev1.Pod) bool {
	gate := apps.Condition(pod, inplace.ConditionServing)
	return Gated(pod) && gate != nil && gate.Status != corev1.ConditionTrue
}
