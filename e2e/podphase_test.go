package e2e

import corev1 "k8s.io/api/core/v1"

// podPhase says how far one pod is on its way to the newest template.
type podPhase string

const (
	untouched  podPhase = "untouched"
	gateClosed podPhase = "gate closed" // still Ready: the kubelet has not seen it
	drained    podPhase = "drained"     // not Ready any more
	patched    podPhase = "patched"     // and the old containers still run
	running    podPhase = "running"     // the new containers, but the pod does not serve
	applied    podPhase = "arrived"
)

// phaseOf tells it of a pod all of whose containers restart, from what it was before the update.
func phaseOf(was, is *corev1.Pod, updated bool) podPhase {
	switch {
	case !updated && gateOpen(is):
		return untouched
	case !updated && ready(is):
		return gateClosed
	case !updated:
		return drained
	case !allRestarted(was, is):
		return patched
	case !gateOpen(is) || !ready(is):
		return running
	}
	return applied
}

// allRestarted says whether each container is another one than it was, and runs.
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
