package readiness

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
)

const (
	// stableRetag is how long a restarted container must run if its image has the same digest as before.
	stableRetag = 3 * time.Second
	// KubeletMargin is how much longer than it should a kubelet may take: to have killed a container after the pod's grace period, and to
	// start a new pod.
	KubeletMargin = 10 * time.Second
)

// evidenceOf returns what the mark notes of the container before the change. From that, Stayput decides later whether the container
// has restarted for the change. The argument sent says that an earlier patch of the container is still pending.
func evidenceOf(c edit.ContainerChange, status corev1.ContainerStatus, sent bool, now time.Time) MovedContainer {
	return MovedContainer{Image: c.Image.To, ImageID: status.ImageID, ContainerID: status.ContainerID,
		At:     metav1.NewTime(now.Truncate(time.Second)),
		Unsure: sent || status.ImageID == "", Restart: c.Restart}
}

// Observed reports whether the kubelet has started to act on the patch. It returns false if that is unknown.
func (m Move) Observed(pod *corev1.Pod) bool {
	return pod.Status.ObservedGeneration > 0 && pod.Status.ObservedGeneration >= m.Generation
}

// OldStopped reports whether no old container can still be running, provided that the kubelet has started to act on the patch. Every
// patched container counts, and no other: a container may be new because of an earlier patch, and another container that fails says
// nothing about the patched ones. The pod last is the previous report, nil if it is not known.
func (m Move) OldStopped(last, pod *corev1.Pod) bool {
	for name, before := range m.Containers {
		if status := ContainerStatus(pod, name); status.Name == "" || !before.gone(status) && !m.replacedSinceReport(before, last, status) {
			return false
		}
	}
	return len(m.Containers) > 0
}

// gone reports whether the old container has stopped: no container runs, or it has become unready since the patch, or it certainly
// is another container than before.
func (c MovedContainer) gone(status corev1.ContainerStatus) bool {
	return status.State.Running == nil || c.stops(status) || !c.Unsure && c.replaced(status)
}

// replacedSinceReport reports whether a container that only restarts is another one than in the previous report, when its kubelet had
// already started to act on the patch. Neither image nor name show that: runtimes report the same ones, by whatever name the image was
// asked for. A container ID other than at the patch is not enough: the container may have failed and been restarted unchanged before its
// kubelet knew of the patch.
func (m Move) replacedSinceReport(c MovedContainer, last *corev1.Pod, status corev1.ContainerStatus) bool {
	if !c.Restart || last == nil || !m.Observed(last) {
		return false
	}
	return status.ContainerID != "" && status.ContainerID != ContainerStatus(last, status.Name).ContainerID
}

// stops reports whether the container has become unready since the patch. A container with another ID may have failed before its
// kubelet knew of the patch and been restarted unchanged, or may come from the patch before.
func (c MovedContainer) stops(status corev1.ContainerStatus) bool {
	same := status.ContainerID != "" && status.ContainerID == c.ContainerID
	maybeSame := c.Unsure && edit.SameImage(status.Image, c.Image)
	return !c.Unready && !status.Ready && (same || maybeSame)
}

// Restarted reports whether every patched container certainly is another one than before.
func (m Move) Restarted(pod *corev1.Pod) bool {
	for name, before := range m.Containers {
		if before.Unsure || !before.replaced(ContainerStatus(pod, name)) {
			return false
		}
	}
	return len(m.Containers) > 0
}

// replaced reports whether the container has another image besides another ID: a container that failed may have been restarted
// unchanged before its kubelet knew of the patch. If both images are the same, the runtime tells them apart by name at most.
// Applied handles names that the runtime spells differently.
func (c MovedContainer) replaced(status corev1.ContainerStatus) bool {
	another := status.ContainerID != "" && status.ContainerID != c.ContainerID
	otherImage := status.ImageID != "" && status.ImageID != c.ImageID || status.Image == c.Image
	return another && !c.Restart && otherImage
}

// Applied reports whether every patched container runs its new image. If not, it returns when to look again although nothing
// changes. 0 means that the pod will change.
func (m Move) Applied(pod *corev1.Pod, now time.Time) (bool, time.Duration) {
	return m.appliedOr(pod, now, func(MovedContainer, corev1.ContainerStatus) bool { return false })
}

// Stopped reports whether no old container can still be running: each patched container runs its new image or has stopped. One
// container may have restarted while another cannot run. If not, it returns when to look again.
func (m Move) Stopped(pod *corev1.Pod, now time.Time) (bool, time.Duration) {
	return m.appliedOr(pod, now, func(before MovedContainer, status corev1.ContainerStatus) bool {
		return m.Observed(pod) && status.Name != "" && before.gone(status)
	})
}

func (m Move) appliedOr(pod *corev1.Pod, now time.Time, or func(MovedContainer, corev1.ContainerStatus) bool) (bool, time.Duration) {
	if m.unobserved(pod) {
		return false, 0
	}
	all, wait := true, time.Duration(0)
	for name, before := range m.Containers {
		applied, later := m.containerApplied(pod, name, now)
		all, wait = all && (applied || or(before, ContainerStatus(pod, name))), inplace.Sooner(wait, later)
	}
	return all, wait
}

// unobserved reports whether the kubelet has certainly not started to act on the patch.
func (m Move) unobserved(pod *corev1.Pod) bool {
	return pod.Status.ObservedGeneration > 0 && !m.Observed(pod)
}

func (m Move) containerApplied(pod *corev1.Pod, name string, now time.Time) (bool, time.Duration) {
	before, status := m.Containers[name], ContainerStatus(pod, name)
	if status.State.Running == nil {
		return false, 0
	}
	if before.Restart {
		return m.restartApplied(pod, before, status, now)
	}
	named := edit.SameImage(status.Image, before.Image)
	stopping := before.Stopping && status.ContainerID == before.ContainerID
	switch {
	case before.Unsure && named && m.Observed(pod) && !stopping:
		return true, 0
	case before.Unsure:
		return inplace.Since(before.At.Time, GracePeriod(pod)+KubeletMargin, now)
	case status.ContainerID == "" || status.ContainerID == before.ContainerID:
		return false, 0
	case named || status.ImageID != before.ImageID:
		return true, 0
	case status.State.Running.StartedAt.Before(&before.At): // the clocks of two machines may differ
		return inplace.Since(before.At.Time, GracePeriod(pod)+KubeletMargin, now)
	}
	return inplace.Since(status.State.Running.StartedAt.Time, stableRetag, now)
}

// restartApplied requires another container, of a pod that has been in service since the patch: a pod that was taken out comes back only
// when its old container was seen to stop (MayGoBack). A pod that serves until its container stops may have failed before its kubelet knew
// of the patch, and then restarts once more. If nothing is known, it waits until the old container must have been killed.
func (m Move) restartApplied(pod *corev1.Pod, before MovedContainer, status corev1.ContainerStatus, now time.Time) (bool, time.Duration) {
	another := status.ContainerID != "" && status.ContainerID != before.ContainerID
	switch {
	case !before.Unsure && !another:
		return false, 0
	case !before.Unsure && m.Observed(pod) && !(Out(pod) && m.PatchedSinceOut(pod)):
		return true, 0
	}
	return inplace.Since(before.At.Time, GracePeriod(pod)+KubeletMargin, now)
}

// Killed reports whether every container that the last patches were to stop must have been killed. If not, it returns when.
func (m Move) Killed(pod *corev1.Pod, now time.Time) (bool, time.Duration) {
	all, wait := true, time.Duration(0)
	for _, before := range m.Containers {
		one, left := inplace.Since(before.At.Time, GracePeriod(pod)+KubeletMargin, now)
		all, wait = all && one, max(wait, left)
	}
	return all, wait
}

// Pending returns the containers that do not yet run what they were patched for.
func (m Move) Pending(pod *corev1.Pod, now time.Time) map[string]MovedContainer {
	pending := map[string]MovedContainer{}
	for name, before := range m.Containers {
		if applied, _ := m.containerApplied(pod, name, now); !applied || m.unobserved(pod) {
			pending[name] = before
		}
	}
	return pending
}
