package readiness

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
)

// OnTimeUntil returns until when containers were stopping for the last patches within the time that they have for it. It is now
// while a container runs that is to stop, and zero if no container had to stop.
func (m Move) OnTimeUntil(pod *corev1.Pod, now time.Time) time.Time {
	var until time.Time
	for name, before := range m.Containers {
		until = inplace.Latest(until, inplace.Earliest(before.stopped(ContainerStatus(pod, name), now), killedBy(pod, before.At.Time, now)))
	}
	if m.RestartsToResize(pod) {
		until = inplace.Latest(until, inplace.Earliest(now, killedBy(pod, m.Resize.notedAt(), now)))
	}
	return until
}

// killedBy returns by when a container that was told to stop must have stopped. It is zero if the container was told in the future,
// which no mark of Stayput says.
func killedBy(pod *corev1.Pod, told, now time.Time) time.Time {
	if told.After(now) {
		return time.Time{}
	}
	return told.Add(GracePeriod(pod) + KubeletMargin)
}

// StopsBy returns by when the containers that have yet to stop must have stopped. It is zero if all have stopped.
func (m Move) StopsBy(pod *corev1.Pod, now time.Time) time.Time {
	var by time.Time
	for name, before := range m.Containers {
		if before.runs(ContainerStatus(pod, name)) {
			by = inplace.Latest(by, killedBy(pod, before.At.Time, now))
		}
	}
	return by
}

// runs reports whether the container is still the one from before the patch.
func (c MovedContainer) runs(status corev1.ContainerStatus) bool {
	return status.State.Running != nil && status.ContainerID == c.ContainerID
}

// stopped returns when the container that ran before ended, by its kubelet's clock. It is now if the container has not ended, and
// zero if the report does not mention it any more.
func (c MovedContainer) stopped(status corev1.ContainerStatus, now time.Time) time.Time {
	if c.runs(status) {
		return now
	}
	for _, state := range []corev1.ContainerState{status.State, status.LastTerminationState} {
		if ended := state.Terminated; ended != nil && ended.ContainerID == c.ContainerID {
			return inplace.Earliest(ended.FinishedAt.Time, now)
		}
	}
	return time.Time{}
}
