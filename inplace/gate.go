package inplace

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// gated tells whether the pod was born with our readiness gate.
func gated(pod *corev1.Pod) bool {
	return slices.Contains(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: ConditionServing})
}

// Unopened tells whether the pod waits for its gate to be opened for the first time, which any replica may do. One that is
// False was closed by the leader and is the leader's.
func Unopened(pod *corev1.Pod) bool { return gated(pod) && condition(pod, ConditionServing) == nil }

// closed tells whether the leader keeps the pod out of service.
func closed(pod *corev1.Pod) bool {
	gate := condition(pod, ConditionServing)
	return gated(pod) && gate != nil && gate.Status != corev1.ConditionTrue
}

// OpenGate lets the kubelet report the pod Ready as soon as its containers are.
func OpenGate(pod *corev1.Pod, now time.Time) SetGate {
	return openGate(pod, now, "its containers decide")
}

func openGate(pod *corev1.Pod, now time.Time, why string) SetGate {
	return SetGate{Pod: pod, Open: true, Why: why, Operations: setServing(pod, corev1.ConditionTrue, "Serving", now)}
}

// closeGate takes the pod out of service before its containers restart.
func closeGate(pod *corev1.Pod, now time.Time, why string) SetGate {
	return SetGate{Pod: pod, Why: why, Operations: setServing(pod, corev1.ConditionFalse, "UpdatingInPlace", now)}
}

func setServing(pod *corev1.Pod, status corev1.ConditionStatus, reason string, now time.Time) []jsonpatch.Operation {
	serving := corev1.PodCondition{Type: ConditionServing, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(now)}
	at := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == ConditionServing })
	switch {
	case at >= 0:
		return guarded(pod, jsonpatch.NewOperation("replace", fmt.Sprintf("/status/conditions/%d", at), serving))
	case len(pod.Status.Conditions) > 0:
		return guarded(pod, jsonpatch.NewOperation("add", "/status/conditions/-", serving))
	default:
		return guarded(pod, jsonpatch.NewOperation("add", "/status/conditions", []corev1.PodCondition{serving}))
	}
}

// condition returns the pod's condition of that type, nil if it has none.
func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func isTrue(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	c := condition(pod, kind)
	return c != nil && c.Status == corev1.ConditionTrue
}

// openGates opens the gates of pods that have no turn: new ones at once, closed ones as soon as that is safe.
func (d *draft) openGates(pods iter.Seq[*podState], now time.Time) {
	for s := range pods {
		switch {
		case Unopened(s.pod):
			d.step(openGate(s.pod, now, "born"))
		case closed(s.pod) && !s.turn && !s.goes:
			open, wait := s.mayReopen(now)
			d.again(wait)
			if open {
				d.step(openGate(s.pod, now, s.whyReopen()))
			}
		}
	}
}

// Reopen lets a pod whose gate is closed serve again, if that may be now: at once, unless it was patched since.
func Reopen(pod *corev1.Pod, now time.Time) (step SetGate, may bool) {
	s := &podState{pod: pod, move: moveOf(pod)}
	may, _ = s.mayReopen(now)
	may = may && !goes(pod)
	return openGate(pod, now, s.whyReopen()), may
}

// openAll opens every closed gate, whatever state the pods are in.
func (d *draft) openAll(pods iter.Seq[*podState], now time.Time, why string) {
	for s := range pods {
		if closed(s.pod) && !s.goes { // one that goes must be kept from going first
			d.step(openGate(s.pod, now, why))
		}
	}
}

// mayReopen tells whether the old containers can no longer be taken for the new ones. The kubelet writes its
// observedGeneration before it kills, so that alone is no proof; neither is a container that happens to be unready.
func (s *podState) mayReopen(now time.Time) (bool, time.Duration) {
	arrived, wait := s.move.arrived(s.pod, now)
	if arrived {
		return true, 0
	}
	seen := s.move.observed(s.pod)
	return seen && (!isTrue(s.pod, corev1.ContainersReady) || s.move.restarted(s.pod)), wait
}

func (s *podState) whyReopen() string {
	if isTrue(s.pod, corev1.ContainersReady) {
		return "its containers run what they should"
	}
	return "the kubelet keeps it out by itself"
}
