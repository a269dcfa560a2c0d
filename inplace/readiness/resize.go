package readiness

import (
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace/amounts"
	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/times"
)

// Resizes reports whether that container's CPU and memory are on their way.
func (m Move) Resizes(container string) bool {
	_, notedSurge := m.Resize[container]
	return notedSurge
}

// Notes reports whether the mark has all that those changes bring, so that they may be written.
func (m Move) Notes(changes edit.ContainerChanges) bool {
	for _, change := range changes.Resizing() {
		if notedSurge, is := m.Resize[change.Container]; !is || notedSurge.To != change.Resources.To {
			return false
		}
	}
	return true
}

// Noting is Resize when those changes are to be written next. What the container had under the pod's identity stays what it was.
func (m Move) Noting(changes edit.ContainerChanges, now time.Time) map[string]ResizedContainer {
	notedSurge := maps.Clone(m.Resize)
	for _, change := range changes.Resizing() {
		resized := ResizedContainer{Back: change.Resources.From, To: change.Resources.To, At: metav1.NewTime(now.Truncate(time.Second)), Restarts: change.Resources.Restarts}
		if before, was := m.Resize[change.Container]; was {
			resized.Back = before.Back
		}
		if notedSurge == nil {
			notedSurge = map[string]ResizedContainer{}
		}
		notedSurge[change.Container] = resized
	}
	return notedSurge
}

// Resized reports whether the pod's containers have the CPU and memory that its spec gives those on their way: its kubelet has seen the spec, has
// nothing left to do, and reports just these. Each alone can be an old fact: observedGeneration is written before anything is done, and the
// conditions (pkg/kubelet/status) say nothing of a spec that was not seen.
//
// Where the pod is on no node yet, nobody has to act: it starts as its spec is then.
func (m Move) Resized(pod *corev1.Pod) bool {
	if pod.Spec.NodeName == "" {
		return true
	}
	if pod.Status.ObservedGeneration < pod.Generation || resizing(pod) != nil {
		return false
	}
	for _, container := range pod.Spec.Containers {
		status := ContainerStatus(pod, container.Name)
		if m.Resizes(container.Name) && (status.Resources == nil || amounts.Of(*status.Resources) != amounts.Of(container.Resources)) {
			return false
		}
	}
	return true
}

// resizing is the condition by which the kubelet says that a resize is not done, the one that is not begun first; nil if there is none.
func resizing(pod *corev1.Pod) *corev1.PodCondition {
	for _, kind := range []corev1.PodConditionType{corev1.PodResizePending, corev1.PodResizeInProgress} {
		if c := conditions.Condition(pod, kind); c != nil && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// SaysOfResize is the kubelet's word for why a resize is not done yet; empty if it has none.
func SaysOfResize(pod *corev1.Pod) string {
	c := resizing(pod)
	if c == nil || c.Reason == "" {
		return ""
	}
	return c.Reason + ": " + c.Message
}

// RestartsToResize reports whether a container may be about to restart for its CPU and memory, written by now or not: what runs may be what its kubelet stops
// next.
func (m Move) RestartsToResize(pod *corev1.Pod) bool {
	return m.Renews() && !m.AwaitsCapacity(pod) && !(m.Resized(pod) && m.given(pod))
}

// Renews reports whether a container restarts for the CPU and memory that are on their way.
func (m Move) Renews() bool {
	for _, notedSurge := range m.Resize {
		if notedSurge.Restarts {
			return true
		}
	}
	return false
}

// given reports whether the spec has what is on its way.
func (m Move) given(pod *corev1.Pod) bool {
	for _, container := range pod.Spec.Containers {
		if notedSurge, is := m.Resize[container.Name]; is && notedSurge.To != amounts.Of(container.Resources) {
			return false
		}
	}
	return true
}

// AwaitsCapacity reports whether its kubelet knows of the resize and has not begun: the pod is still all that it was.
func (m Move) AwaitsCapacity(pod *corev1.Pod) bool {
	c := m.unresized(pod)
	return c != nil && c.Type == corev1.PodResizePending
}

// Refused is why the kubelet will never do the resize, in its words; empty if it may.
func (m Move) Refused(pod *corev1.Pod) string {
	if c := m.unresized(pod); c != nil && c.Reason == corev1.PodReasonInfeasible {
		return SaysOfResize(pod)
	}
	return ""
}

// Overdue is why the resize has not been done within the deadline, 0 for none; empty if it has been, or may be yet. If it is only a matter of time, of how much.
// A container that restarts for it has its grace period besides. After each further patch the kubelet has yet to see that the CPU and memory are the same.
func (m Move) Overdue(pod *corev1.Pod, deadline time.Duration, now time.Time) (string, time.Duration) {
	if len(m.Resize) == 0 || deadline == 0 || m.Resized(pod) {
		return "", 0
	}
	if m.Renews() {
		deadline += GracePeriod(pod)
	}
	since, says := times.Latest(m.notedAt(), m.patchedAt()), "its kubelet does not report them"
	if c := m.unresized(pod); c != nil {
		since, says = times.Latest(since, c.LastTransitionTime.Time), SaysOfResize(pod)
	}
	over, wait := times.Since(since, deadline, now)
	if !over {
		return "", wait
	}
	return fmt.Sprintf("not within %s: %s", deadline, says), 0
}

// unresized is what the kubelet says of a resize that it knows of and that is not done; nil if nothing.
func (m Move) unresized(pod *corev1.Pod) *corev1.PodCondition {
	if c := resizing(pod); len(m.Resize) > 0 && c != nil && c.ObservedGeneration >= pod.Generation {
		return c
	}
	return nil
}

// patchedAt is when containers were last patched to restart.
func (m Move) patchedAt() time.Time {
	var at time.Time
	for _, moved := range m.Containers {
		at = times.Latest(at, moved.At.Time)
	}
	return at
}

func (m Move) notedAt() time.Time {
	var at time.Time
	for _, notedSurge := range m.Resize {
		at = times.Latest(at, notedSurge.At.Time)
	}
	return at
}
