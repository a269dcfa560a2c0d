package readiness

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/times"
)

// OnTimeUntil is until when containers stopped for the last patches within the time that they have for it: now, while one runs that is to stop. Zero if
// none had to.
func (m Move) OnTimeUntil(pod *corev1.Pod, now time.Time) time.Time {
	var until time.Time
	for name, before := range m.Containers {
		until = times.Latest(until, times.Earliest(before.stopped(ContainerStatus(pod, name), now), killedBy(pod, before.At.Time, now)))
	}
	if m.RestartsToResize(pod) {
		until = times.Latest(until, times.Earliest(now, killedBy(pod, m.notedAt(), now)))
	}
	return until
}

// killedBy is by when a container must have stopped since it was told to; zero if that is yet to come, which no mark of ours says.
func killedBy(pod *corev1.Pod, told, now time.Time) time.Time {
	if told.After(now) {
		return time.Time{}
	}
	return told.Add(GracePeriod(pod) + KillMargin)
}

// StopsBy is by when the containers must have stopped that have yet to; zero if none has.
func (m Move) StopsBy(pod *corev1.Pod, now time.Time) time.Time {
	var by time.Time
	for name, before := range m.Containers {
		if before.runs(ContainerStatus(pod, name)) {
			by = times.Latest(by, killedBy(pod, before.At.Time, now))
		}
	}
	return by
}

// runs: it is still the one from before.
func (c MovedContainer) runs(status corev1.ContainerStatus) bool {
	return status.State.Running != nil && status.ContainerID == c.ContainerID
}

// stopped is when the container that ran before has ended, by its kubelet's clock; now if it has not, zero if the report does not know it any more.
func (c MovedContainer) stopped(status corev1.ContainerStatus, now time.Time) time.Time {
	if c.runs(status) {
		return now
	}
	for _, state := range []corev1.ContainerState{status.State, status.LastTerminationState} {
		if ended := state.Terminated; ended != nil && ended.ContainerID == c.ContainerID {
			return times.Earliest(ended.FinishedAt.Time, now)
		}
	}
	return time.Time{}
}
