package readiness

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

// Kubelets 1.35 and 1.36 copy from the previous container that a restarted one has started (convertToAPIContainerStatuses in
// pkg/kubelet/kubelet_pods.go; kubernetes#141155), until the startup probe's next run, at most one period later. If there is also a
// readiness probe, that probe alone decides until then, and the kubelet takes Ready back. If the container that is to be patched has no
// readiness probe, the update is native (inplace/edit/forbidden.go).

// tooEarlyFor is how long a container may be reported as started although it is not. It counts from the container's start plus one period
// of its startup probe.
const tooEarlyFor = 5 * time.Second

// StartupProbed reports whether any container of the pod has a startup probe.
func StartupProbed(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.StartupProbe != nil })
}

// ProvedStarted reports whether no container can be ready only because its startup probe has not answered yet. If one can, it returns when
// that ends.
func ProvedStarted(pod *corev1.Pod, now time.Time) (bool, time.Duration) {
	if !startupUnproved(pod) {
		return true, 0
	}
	all, wait := true, time.Duration(0)
	for _, c := range pod.Spec.Containers {
		if running := restartedWithProbe(pod, c); running != nil {
			one, left := inplace.Since(running.StartedAt.Time, startupKnown(c), now)
			all, wait = all && one, max(wait, left)
		}
	}
	return all, wait
}

// startupUnproved reports whether a container may have been reported ready without its startup probe. Without a startup probe nothing is
// copied: the container is ready because its own readiness probe said so, or because it runs.
func startupUnproved(pod *corev1.Pod) bool {
	ready := apps.Condition(pod, corev1.ContainersReady)
	return ready == nil || slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		running := restartedWithProbe(pod, c)
		return running != nil && ready.LastTransitionTime.Sub(running.StartedAt.Time) < startupKnown(c)
	})
}

// restartedWithProbe returns since when the container runs, if it has a startup probe and has restarted; nil otherwise. Few containers have
// a startup probe, so the status of the others is not searched.
func restartedWithProbe(pod *corev1.Pod, c corev1.Container) *corev1.ContainerStateRunning {
	if c.StartupProbe == nil {
		return nil
	}
	status := ContainerStatus(pod, c.Name)
	if status.RestartCount == 0 {
		return nil
	}
	return status.State.Running
}

// startupKnown returns how long after a container's start the kubelet's report of its startup probe is known to come from that probe.
func startupKnown(c corev1.Container) time.Duration {
	return time.Duration(c.StartupProbe.PeriodSeconds)*time.Second + tooEarlyFor
}
