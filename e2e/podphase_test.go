package e2e

import corev1 "k8s.io/api/core/v1"

// podPhase is how far a pod's update has come.
type podPhase string

const (
	untouched podPhase = "untouched"
	drained   podPhase = "drained" // out of service
	patched   podPhase = "patched" // the old containers still run
	running   podPhase = "running" // the new containers run, but the pod is not Ready
	applied   podPhase = "arrived"
)

// phaseOf returns the phase of a pod of which all containers restart. was is the pod before the update.
func phaseOf(was, is *corev1.Pod, updated bool) podPhase {
	switch {
	case !updated && isOut(is):
		return drained
	case !updated:
		return untouched
	case !allRestarted(was, is):
		return patched
	case !ready(is):
		return running
	}
	return applied
}

// allRestarted reports whether each container has been replaced since was, and runs.
func allRestarted(was, is *corev1.Pod) bool {
	before := map[string]string{}
	for _, status := range was.Status.ContainerStatuses {
		before[status.Name] = status.ContainerID
	}
	for _, status := range is.Status.ContainerStatuses {
		if status.ContainerID == before[status.Name] || status.State.Running == nil {
			return false
		}
	}
	return true
}
