package readiness

import (
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
)

// Of reports whether the resize of that container is in progress.
func (r Resize) Of(container string) bool {
	_, noted := r[container]
	return noted
}

// Notes reports whether the mark notes everything that the changes resize, so that the resize may be written.
func (r Resize) Notes(changes edit.ContainerChanges) bool {
	for _, change := range changes.Resizing() {
		if noted, is := r[change.Container]; !is || noted.To != change.Resources.To {
			return false
		}
	}
	return true
}

// Noting returns what to note of changes that are to be written next. What a container had under the pod's identity is not overwritten.
func (r Resize) Noting(changes edit.ContainerChanges, now time.Time) Resize {
	noted := maps.Clone(r)
	for _, change := range changes.Resizing() {
		resized := ResizedContainer{Back: change.Resources.From, To: change.Resources.To, At: metav1.NewTime(now.Truncate(time.Second)),
			Restarts: change.Resources.Restarts}
		if before, was := r[change.Container]; was {
			resized.Back = before.Back
		}
		if noted == nil {
			noted = Resize{}
		}
		noted[change.Container] = resized
	}
	return noted
}

// Resized reports whether the pod's containers have the CPU and memory that its spec gives the containers in Resize. Then its
// kubelet has seen the spec, has nothing left to do, and reports exactly these amounts. Each of the three alone can be outdated:
// observedGeneration is written before anything is done, and the conditions (pkg/kubelet/status) say nothing of a spec that the
// kubelet has not seen.
//
// If the pod is on no node yet, no kubelet has to act: the pod starts with what its spec says then.
func (m Move) Resized(pod *corev1.Pod) bool {
	if pod.Spec.NodeName == "" {
		return true
	}
	if pod.Status.ObservedGeneration < pod.Generation || resizing(pod) != nil {
		return false
	}
	for _, container := range pod.Spec.Containers {
		status := ContainerStatus(pod, container.Name)
		if m.Resize.Of(container.Name) && (status.Resources == nil || edit.AmountsOf(*status.Resources) != edit.AmountsOf(container.Resources)) {
			return false
		}
	}
	return true
}

// resizing returns the condition by which the kubelet says that a resize is not done, or nil if there is none. A pending resize
// comes before one in progress.
func resizing(pod *corev1.Pod) *corev1.PodCondition {
	for _, kind := range []corev1.PodConditionType{corev1.PodResizePending, corev1.PodResizeInProgress} {
		if c := apps.Condition(pod, kind); c != nil && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// ResizeMessage returns the kubelet's reason why a resize is not done yet. It is empty if there is none.
func ResizeMessage(pod *corev1.Pod) string {
	c := resizing(pod)
	if c == nil || c.Reason == "" {
		return ""
	}
	return c.Reason + ": " + c.Message
}

// RestartsToResize reports whether a container may be about to restart for its CPU or memory, even if these have not been written
// yet: the kubelet may stop the running container next. The pod stays out of service until then, from the write of the mark on. It goes
// back while the kubelet has no capacity: it is better to serve, and to restart later without a drain, than not to serve.
func (m Move) RestartsToResize(pod *corev1.Pod) bool {
	return m.yetToResize(pod) && !m.AwaitsCapacity(pod)
}

// yetToResize reports whether a container restarts for its CPU or memory, now or at any time later.
func (m Move) yetToResize(pod *corev1.Pod) bool {
	return m.Resize.Restarts() && !(m.Resized(pod) && m.Resize.given(pod))
}

// Restarts reports whether any container restarts for the resize.
func (r Resize) Restarts() bool {
	for _, noted := range r {
		if noted.Restarts {
			return true
		}
	}
	return false
}

// given reports whether the spec has the CPU and memory that are noted.
func (r Resize) given(pod *corev1.Pod) bool {
	for _, container := range pod.Spec.Containers {
		if noted, is := r[container.Name]; is && noted.To != edit.AmountsOf(container.Resources) {
			return false
		}
	}
	return true
}

// AwaitsCapacity reports whether the kubelet knows of the resize and has not begun: nothing about the running pod has changed.
func (m Move) AwaitsCapacity(pod *corev1.Pod) bool {
	c := m.unresized(pod)
	return c != nil && c.Type == corev1.PodResizePending
}

// Refused returns why the kubelet will never do the resize, in the kubelet's words. It is empty if the kubelet may do it.
func (m Move) Refused(pod *corev1.Pod) string {
	if c := m.unresized(pod); c != nil && c.Reason == corev1.PodReasonInfeasible {
		return ResizeMessage(pod)
	}
	return ""
}

// Overdue returns why the resize was not done within the deadline. It is empty if it was done, or can still be done in time; then
// Overdue also returns how much time is left. A deadline of 0 is none. A container that restarts for the resize also gets its grace
// period. Each further patch starts the deadline again, since the kubelet must first see that the CPU and memory are the same.
func (m Move) Overdue(pod *corev1.Pod, deadline time.Duration, now time.Time) (string, time.Duration) {
	if len(m.Resize) == 0 || deadline == 0 || m.Resized(pod) {
		return "", 0
	}
	if m.Resize.Restarts() {
		deadline += GracePeriod(pod)
	}
	since, says := inplace.Latest(m.Resize.notedAt(), m.patchedAt()), "its kubelet does not report the new CPU and memory"
	if c := m.unresized(pod); c != nil {
		since, says = inplace.Latest(since, c.LastTransitionTime.Time), ResizeMessage(pod)
	}
	over, wait := inplace.Since(since, deadline, now)
	if !over {
		return "", wait
	}
	return fmt.Sprintf("not within %s: %s", deadline, says), 0
}

// unresized returns the kubelet's condition of a resize that it knows of and has not done. It is nil if there is none.
func (m Move) unresized(pod *corev1.Pod) *corev1.PodCondition {
	if c := resizing(pod); len(m.Resize) > 0 && c != nil && c.ObservedGeneration >= pod.Generation {
		return c
	}
	return nil
}

// patchedAt returns when containers were last patched to restart.
func (m Move) patchedAt() time.Time {
	var at time.Time
	for _, moved := range m.Containers {
		at = inplace.Latest(at, moved.At.Time)
	}
	return at
}

// notedAt returns when a container was last noted.
func (r Resize) notedAt() time.Time {
	var at time.Time
	for _, noted := range r {
		at = inplace.Latest(at, noted.At.Time)
	}
	return at
}
