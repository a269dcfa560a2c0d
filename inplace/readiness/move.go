package readiness

import (
	"encoding/json"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
)

// Move is the mark on a pod that was patched in place: what the pod became, and the evidence by which to decide whether its old
// containers have stopped.
type Move struct {
	// Hash is the hash of the revision the pod was patched for: pod-template-hash or controller-revision-hash.
	Hash string `json:"hash"`
	// Generation is the pod's generation after the last patch of its containers. It is 0 on clusters that do not count it.
	Generation int64 `json:"generation,omitempty"`
	// Containers are the containers that restart, by name, sidecars among them.
	Containers map[string]MovedContainer `json:"containers,omitempty"`
	// Back are the images, by container, that a partially patched pod must get again if it does not become what Hash says. They are
	// the images that the pod had under its labels.
	Back map[string]string `json:"back,omitempty"`
	// Resize is the resize in progress. It is set only while the pod is partially patched.
	Resize Resize `json:"resize,omitempty"`
	// Read are the labels and annotations that a partially patched pod has from what Hash says, although its identity says otherwise:
	// variables of the containers that were restarted read them. Its own revision has their values.
	Read edit.ReadKeys `json:"read,omitzero"`
}

// MovedContainer is the evidence for a container that restarts: what it was before it was patched.
type MovedContainer struct {
	// Image is the image it gets: what admission makes of the template's image, or another name of that.
	Image string `json:"image"`
	// ImageID and ContainerID are those it had.
	ImageID     string `json:"imageID,omitempty"`
	ContainerID string `json:"containerID,omitempty"`
	// At is when it was patched.
	At metav1.Time `json:"at"`
	// Unsure says that the container that ran before is not known: the pod was patched before an earlier patch was applied, or before
	// the container had started. Then another container ID proves nothing, and the same ID does not disprove anything.
	Unsure bool `json:"unsure,omitempty"`
	// Stopping says that the kubelet had begun to act on the patch before this one. So the container that ran then is about to stop,
	// whatever its image.
	Stopping bool `json:"stopping,omitempty"`
	// Unready says that the container was not ready at the last patch of containers. Then its being unready does not show that the
	// kubelet has seen the patch.
	Unready bool `json:"unready,omitempty"`
	// Restart says that the container only restarts: Image is another name of the image it had.
	Restart bool `json:"restart,omitempty"`
}

// Resize has the containers, by name, that get other CPU and memory.
type Resize map[string]ResizedContainer

// ResizedContainer is a container that gets other CPU and memory. The mark notes it before the resize is written, because that
// write cannot carry a mark.
type ResizedContainer struct {
	// Back is what the container had under the pod's identity. To is what it gets.
	Back edit.Amounts `json:"from"`
	To   edit.Amounts `json:"to"`
	// At is when the resize was noted.
	At metav1.Time `json:"at"`
	// Restarts says that the container restarts for the resize.
	Restarts bool `json:"restarts,omitempty"`
}

// longestMove is several times the most text that the mark has for one container. Names of images have at most 500 characters
// (https://github.com/distribution/reference), and so have IDs. Each edit adds at most 20 labels and annotations to the mark
// (edit.ReadKeys), of at most 317 characters each.
const longestMove = 8 << 10

// MoveOf returns the pod's mark, or the zero Move if it has none. A mark that does not parse is not Stayput's and counts as none.
// So does a mark of a generation that the pod has not reached: it belongs to another pod, and this pod was made from a backup of
// that one. A mark that is longer than the pod's containers need is not even parsed: any user who may edit the pod can write an
// annotation of 256 KiB. Callers must not change it: marks with the same text share it.
func MoveOf(pod *corev1.Pod) Move {
	text := pod.Annotations[inplace.AnnotationMove]
	if text == "" || len(text) > longestMove*(1+len(pod.Spec.Containers)+len(pod.Spec.InitContainers)) {
		return Move{}
	}
	move := ofMarks.Of(text, len(text), func() (move Move) {
		if err := json.Unmarshal([]byte(text), &move); err != nil {
			return Move{}
		}
		return move
	})
	if pod.Generation > 0 && move.Generation > pod.Generation {
		return Move{}
	}
	return move
}

// ofMarks has the marks that were parsed lately: a plan asks for those of all pods, and few of them have changed since the last plan.
var ofMarks apps.Findings[string, Move]

// Next returns the mark for a write that makes this change, on the way to the revision with that hash. The argument entries has the
// entries to keep: all, or the pending ones.
func (m Move) Next(pod *corev1.Pod, hash string, entries map[string]MovedContainer, does edit.Change, now time.Time) Move {
	next := Move{Hash: hash, Generation: m.Generation, Containers: maps.Clone(entries)}
	if len(does.Containers) == 0 {
		return next
	}
	if pod.Generation > 0 {
		next.Generation = pod.Generation + 1
	}
	if next.Containers == nil {
		next.Containers = map[string]MovedContainer{}
	}
	pending := m.Pending(pod, now)
	for change := range does.Containers.Restarting() {
		status := ContainerStatus(pod, change.Container)
		before, sent := pending[change.Container]
		entry := evidenceOf(change, status, sent, now)
		entry.Stopping = sent && (m.Observed(pod) || before.Stopping && before.ContainerID == status.ContainerID)
		next.Containers[change.Container] = entry
	}
	for name, entry := range next.Containers {
		entry.Unready = !ContainerStatus(pod, name).Ready
		next.Containers[name] = entry
	}
	return next
}

// String returns the mark's value.
func (m Move) String() string {
	raw, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings, numbers and times always encode
	}
	return string(raw)
}
