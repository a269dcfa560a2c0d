package readiness

import (
	"encoding/json"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/amounts"
	"github.com/stayput/stayput/inplace/edit"
)

// Move is the mark on a pod that was patched in place: what it became, and by what evidence to tell that its containers have followed.
type Move struct {
	// Hash is that of the revision the pod was patched for: pod-template-hash or controller-revision-hash.
	Hash string `json:"hash"`
	// Generation is that of the pod after the last patch of its containers; 0 on clusters that do not count it.
	Generation int64 `json:"generation,omitempty"`
	// Containers are those that restart, by name, sidecars among them.
	Containers map[string]MovedContainer `json:"containers,omitempty"`
	// Sidecars are those of Containers that are, in the mark's text and only there: a manager that knows of none would look for them among the
	// pod's containers, and wait for ever.
	Sidecars map[string]MovedContainer `json:"sidecars,omitempty"`
	// Back are the images, by container, that a pod which is half-way has to get again if it does not become what Hash says: those it had
	// under its labels.
	Back map[string]string `json:"back,omitempty"`
	// Resize are the containers, by name, whose CPU and memory are on their way; only while the pod is half-way.
	Resize map[string]ResizedContainer `json:"resize,omitempty"`
}

// MovedContainer is the evidence of a container that restarts: what it was before it was patched.
type MovedContainer struct {
	// Image it gets: what admission makes of the template's, or another name of that.
	Image string `json:"image"`
	// ImageID and ContainerID it had.
	ImageID     string `json:"imageID,omitempty"`
	ContainerID string `json:"containerID,omitempty"`
	// At is when it was patched.
	At metav1.Time `json:"at"`
	// Unsure: what ran before is not known, since the pod was patched before it had become what it should, or had not started.
	// Then another ID proves nothing, and the old one nothing to the contrary.
	Unsure bool `json:"unsure,omitempty"`
	// Stopping: the kubelet had begun to act on the patch before that one, so the container that ran then is on its way out, whatever image it has.
	Stopping bool `json:"stopping,omitempty"`
	// Unready: it was not ready at the last patch of containers. Then that it is not is no sign of the patch having been seen.
	Unready bool `json:"unready,omitempty"`
	// Restart: it only restarts, so Image is another name of the one it had.
	Restart bool `json:"restart,omitempty"`
	// Sidecar: it is one.
	Sidecar bool `json:"-"`
}

// ResizedContainer is a container that gets other CPU and memory. It is noted before they are written, since that write can bring no mark.
type ResizedContainer struct {
	// Back is what the container had under the pod's identity, To what it gets.
	Back amounts.Amounts `json:"from"`
	To   amounts.Amounts `json:"to"`
	// At is when that was noted.
	At metav1.Time `json:"at"`
	// Restarts: it restarts for that.
	Restarts bool `json:"restarts,omitempty"`
}

// longestMove is what the mark has of one container at most, several times over: names of images are no longer than 500 characters
// (https://github.com/distribution/reference), and IDs not either.
const longestMove = 8 << 10

// MoveOf returns the pod's mark; the zero Move if it has none. One that does not parse is not ours and counts as none, and so does one
// of a generation that the pod has not come to yet: it is another pod's, of which this one was made from a backup. One that is longer than
// the pod's containers need is not even parsed: anybody who may edit the pod can write an annotation of 256 KiB.
func MoveOf(pod *corev1.Pod) Move {
	var move Move
	mark := pod.Annotations[inplace.AnnotationMove]
	if len(mark) > longestMove*(1+len(pod.Spec.Containers)+len(pod.Spec.InitContainers)) {
		return Move{}
	}
	err := json.Unmarshal([]byte(mark), &move)
	if err != nil || pod.Generation > 0 && move.Generation > pod.Generation {
		return Move{}
	}
	return move.joined()
}

// joined has the sidecars among the containers, split in a field of their own.
func (m Move) joined() Move {
	for name, entry := range m.Sidecars {
		if m.Containers == nil {
			m.Containers = map[string]MovedContainer{}
		}
		entry.Sidecar = true
		m.Containers[name] = entry
	}
	m.Sidecars = nil
	return m
}

func (m Move) split() Move {
	all := m.Containers
	m.Containers, m.Sidecars = map[string]MovedContainer{}, map[string]MovedContainer{}
	for name, entry := range all {
		if entry.Sidecar {
			m.Sidecars[name] = entry
		} else {
			m.Containers[name] = entry
		}
	}
	return m
}

// Next is the mark of a write that makes this change, on the way to the revision with that hash. The entries are those to keep: all, or
// those pending.
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
		entry.Unready, entry.Sidecar = !ContainerStatus(pod, name).Ready, edit.SidecarNamed(&pod.Spec, name)
		next.Containers[name] = entry
	}
	return next
}

// String is the mark's value.
func (m Move) String() string {
	raw, err := json.Marshal(m.split())
	if err != nil {
		panic(err) // strings, numbers and times always encode
	}
	return string(raw)
}
