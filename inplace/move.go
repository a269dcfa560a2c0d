package inplace

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Move is the mark on a pod that was patched in place: what it became, and how to tell when its containers have followed.
type Move struct {
	// Hash is that of the revision whose images the pod got: pod-template-hash or controller-revision-hash.
	Hash string `json:"hash"`
	// Generation is that of the pod after the last patch of its images; 0 on clusters that do not count it.
	Generation int64 `json:"generation,omitempty"`
	// Containers are those that restart, by name.
	Containers map[string]MovedContainer `json:"containers,omitempty"`
	// Back are the images, by container, that a pod has to get again if it does not become what Hash says: those it had under its labels.
	Back map[string]string `json:"back,omitempty"`
}

// MovedContainer is a container before its image was patched.
type MovedContainer struct {
	// Image it gets: what admission makes of the template's.
	Image string `json:"image"`
	// ImageID and ContainerID it had.
	ImageID     string `json:"imageID,omitempty"`
	ContainerID string `json:"containerID,omitempty"`
	// At is when it was patched.
	At metav1.Time `json:"at"`
	// Unsure: what ran before is not known, since the pod was patched before it had become what it should, or had not started.
	// Then another ID proves nothing, and the old one nothing to the contrary.
	Unsure bool `json:"unsure,omitempty"`
	// Unready: it was not ready at the last patch of images. Then that it is not is no sign of the patch having been seen.
	Unready bool `json:"unready,omitempty"`
}

const (
	// stableRetag is how long a restarted container must run if its image has the same digest as before.
	stableRetag = 3 * time.Second
	// killMargin is added to the pod's grace period until a container must have been killed if it is ever to be.
	killMargin = 10 * time.Second
	// longestMove is what the mark has of one container at most, several times over: names of images are no longer than 500 characters
	// (https://github.com/distribution/reference), and IDs not either.
	longestMove = 8 << 10
)

// moveOf returns the pod's mark; the zero Move if it has none. One that does not parse is not ours and counts as none, and so does one
// of a generation that the pod has not come to yet: it is another pod's, of which this one was made from a backup. One that is longer than
// the pod's containers need is not even parsed: anybody who may edit the pod can write an annotation of 256 KiB.
func moveOf(pod *corev1.Pod) Move {
	var move Move
	mark := pod.Annotations[AnnotationMove]
	if len(mark) > longestMove*(1+len(pod.Spec.Containers)) {
		return Move{}
	}
	err := json.Unmarshal([]byte(mark), &move)
	if err != nil || pod.Generation > 0 && move.Generation > pod.Generation {
		return Move{}
	}
	return move
}

// observed tells whether the kubelet has started to act on the patch; unknown counts as not.
func (m Move) observed(pod *corev1.Pod) bool {
	return pod.Status.ObservedGeneration > 0 && pod.Status.ObservedGeneration >= m.Generation
}

// followed tells whether no patched container can be the one that was to stop, if the kubelet has started to act on the patch. Each one
// counts, and no other: an earlier patch may be why one is new, and a neighbour that fails says nothing of those that were patched.
func (m Move) followed(pod *corev1.Pod) bool {
	for name, before := range m.Containers {
		if status := containerStatus(pod, name); status.Name == "" || !before.gone(status) {
			return false
		}
	}
	return len(m.Containers) > 0
}

// gone: it does not run, or has become unready since the patch, or is certainly another one than before.
func (c MovedContainer) gone(status corev1.ContainerStatus) bool {
	return status.State.Running == nil || c.stops(status) || !c.Unsure && c.replaced(status)
}

// stops: it has become unready since the patch. One with another ID may have failed before its kubelet knew of the patch, and come again as it
// was.
func (c MovedContainer) stops(status corev1.ContainerStatus) bool {
	same := status.ContainerID != "" && status.ContainerID == c.ContainerID
	return !c.Unready && !status.Ready && (c.Unsure || same)
}

// restarted tells whether every patched container is certainly another one than before.
func (m Move) restarted(pod *corev1.Pod) bool {
	for name, before := range m.Containers {
		if before.Unsure || !before.replaced(containerStatus(pod, name)) {
			return false
		}
	}
	return len(m.Containers) > 0
}

// replaced asks for another image besides another ID: a container that failed may have come again as it was before its kubelet knew of the
// patch. Where both images are the same, the runtime tells them apart by name at most; a name that it writes out otherwise is for arrived.
func (c MovedContainer) replaced(status corev1.ContainerStatus) bool {
	another := status.ContainerID != "" && status.ContainerID != c.ContainerID
	return another && (status.ImageID != "" && status.ImageID != c.ImageID || status.Image == c.Image)
}

// arrived tells whether every patched container runs its new image; if not, when to look again although nothing changes
// (0: the pod will).
func (m Move) arrived(pod *corev1.Pod, now time.Time) (bool, time.Duration) {
	if pod.Status.ObservedGeneration > 0 && !m.observed(pod) {
		return false, 0
	}
	all, wait := true, time.Duration(0)
	for name := range m.Containers {
		one, later := m.containerArrived(pod, name, now)
		all, wait = all && one, sooner(wait, later)
	}
	return all, wait
}

func (m Move) containerArrived(pod *corev1.Pod, name string, now time.Time) (bool, time.Duration) {
	before, status := m.Containers[name], containerStatus(pod, name)
	if status.State.Running == nil {
		return false, 0
	}
	named := sameImage(status.Image, before.Image)
	switch {
	case before.Unsure && named && m.observed(pod):
		return true, 0
	case before.Unsure:
		return since(before.At.Time, gracePeriod(pod)+killMargin, now)
	case status.ContainerID == "" || status.ContainerID == before.ContainerID:
		return false, 0
	case named || status.ImageID != before.ImageID:
		return true, 0
	case status.State.Running.StartedAt.Before(&before.At): // by the clocks of two machines
		return since(before.At.Time, gracePeriod(pod)+killMargin, now)
	}
	return since(status.State.Running.StartedAt.Time, stableRetag, now)
}

// next is the mark of a patch with these images, for what the ReplicaSet with that hash makes. The entries are those to keep:
// all, or those pending.
func (m Move) next(pod *corev1.Pod, hash string, entries map[string]MovedContainer, images []ImageChange, now time.Time) Move {
	next := Move{Hash: hash, Generation: m.Generation, Containers: maps.Clone(entries)}
	if len(images) == 0 {
		return next
	}
	if pod.Generation > 0 {
		next.Generation = pod.Generation + 1
	}
	if next.Containers == nil {
		next.Containers = map[string]MovedContainer{}
	}
	pending := m.pending(pod, now)
	for _, image := range images {
		status, before := containerStatus(pod, image.Container), MovedContainer{Image: image.To, At: metav1.NewTime(now.Truncate(time.Second))}
		_, before.Unsure = pending[image.Container]
		before.ImageID, before.ContainerID, before.Unsure = status.ImageID, status.ContainerID, before.Unsure || status.ImageID == ""
		next.Containers[image.Container] = before
	}
	for name, entry := range next.Containers {
		entry.Unready = !containerStatus(pod, name).Ready
		next.Containers[name] = entry
	}
	return next
}

// halfway are the images by which the pod differs from what its labels say, and those to go back to.
func (m Move) halfway(pod *corev1.Pod) []ImageChange {
	var before []corev1.Container
	for _, name := range slices.Sorted(maps.Keys(m.Back)) {
		before = append(before, corev1.Container{Name: name, Image: m.Back[name]})
	}
	return differing(pod, before)
}

// pending are the containers that have not arrived where they were sent.
func (m Move) pending(pod *corev1.Pod, now time.Time) map[string]MovedContainer {
	behind := pod.Status.ObservedGeneration > 0 && !m.observed(pod)
	pending := map[string]MovedContainer{}
	for name, before := range m.Containers {
		if arrived, _ := m.containerArrived(pod, name, now); !arrived || behind {
			pending[name] = before
		}
	}
	return pending
}

// String is the mark's value.
func (m Move) String() string {
	raw, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings, numbers and times always encode
	}
	return string(raw)
}

func containerStatus(pod *corev1.Pod, name string) corev1.ContainerStatus {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == name {
			return status
		}
	}
	return corev1.ContainerStatus{}
}

func gracePeriod(pod *corev1.Pod) time.Duration {
	if seconds := pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}

// since tells whether the duration has passed, or how long it still takes.
func since(start time.Time, duration time.Duration, now time.Time) (bool, time.Duration) {
	left := start.Add(duration).Sub(now)
	if left <= 0 {
		return true, 0
	}
	return false, left
}

// sooner returns the shorter of two waits, of which 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}
