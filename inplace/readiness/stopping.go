package readiness

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

// Where the native controller waits for every pod that is not Ready, no gate may be closed on a pod that waits for its patch: if every
// manager ended then, nothing would open the gate. Such a pod is patched while it serves, with an identity that no revision has. Its gate
// closes afterwards, only as long as an old container certainly is about to stop. The kubelet stops that container whatever else happens.
// With each of the kubelet's reports the API server opens the gate, unless the report shows that such a container still runs (ready.go).
// The report need not prove that the restart is the patch's: no controller counts the pod as updated, so the gate may open at any moment.
// A pod that restarts on request keeps its identity, which is true all the time. So there the same holds.

// MayDrainStopping reports whether the gate of such a pod may close now: the pod serves, all its old containers run, and its kubelet's next
// reports have a generation. The gate closes once after each patch: it must not have moved since.
func MayDrainStopping(pod *corev1.Pod) bool {
	gate, move := apps.Condition(pod, inplace.ConditionServing), MoveOf(pod)
	if !Gated(pod) || !Live(pod) || gate == nil || gate.Status != corev1.ConditionTrue || !apps.IsTrue(pod, corev1.PodReady) {
		return false
	}
	for name, before := range move.Containers {
		if !before.runs(ContainerStatus(pod, name)) || !gate.LastTransitionTime.Before(&before.At) {
			return false
		}
	}
	return len(move.Resize) == 0 && pod.Status.ObservedGeneration > 0 && move.stops(pod)
}

// DrainsStopping reports whether the gate of such a pod is closed.
func DrainsStopping(pod *corev1.Pod) bool {
	return Closed(pod) && apps.Condition(pod, inplace.ConditionServing).Reason == ReasonRestarting
}

// DrainsFirst reports whether the gate of a pod is closed that is drained before its patch.
func DrainsFirst(pod *corev1.Pod) bool { return Closed(pod) && !DrainsStopping(pod) }

// StillStopping reports whether the gate of such a pod is to stay closed: some old container still runs. A pod that is Ready all the same
// shows that the API server does not check reports, and so would not open the gate.
func StillStopping(pod *corev1.Pod) bool {
	return DrainsStopping(pod) && MoveOf(pod).stops(pod) && !apps.IsTrue(pod, corev1.PodReady)
}

// stops reports whether the last change of the pod's spec was Stayput's patch, and an old container runs that its kubelet stops for it.
func (m Move) stops(pod *corev1.Pod) bool {
	runs := false
	for name, before := range m.Containers {
		if before.Unsure {
			return false
		}
		status := ContainerStatus(pod, name)
		runs = runs || status.ContainerID != "" && before.runs(status)
	}
	return runs && m.Generation > 0 && m.Generation == pod.Generation
}
