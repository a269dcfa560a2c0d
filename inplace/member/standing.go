package member

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/readiness"
)

// Progress is how far one pod is.
type Progress string

// The progress of pods.
const (
	Settled  Progress = "settled"  // it is what it should be, and available
	Updating Progress = "updating" // it is being drained or resized, restarts or starts
	Waiting  Progress = "waiting"  // its update has not begun
	Kept     Progress = "kept"     // by the partition, as it is
)

// Standing is what there is to tell people of one pod.
type Standing struct {
	Pod *corev1.Pod
	// Revision is the name of the one that the pod's identity tells of; empty if that is gone.
	Revision string
	Progress Progress
	// Awaits is what has to come next, one clause; empty if nothing has to.
	Awaits string
}

// Standing of the pod. Replaces is who makes another pod in its place, empty if it is updated in place; before is what keeps it from its turn
// besides the others, one clause, empty if nothing does.
func (s *State) Standing(revision, replaces, before string) Standing {
	progress, awaits := s.stands(replaces, before)
	return Standing{Pod: s.Pod, Revision: revision, Progress: progress, Awaits: awaits}
}

func (s *State) stands(replaces, before string) (Progress, string) {
	switch {
	case s.Goes:
		return Updating, "its end, as it was borrowed"
	case s.OfTarget && !s.Needs().Left() && s.Available:
		return Settled, ""
	case s.Kept && replaces == "":
		return Kept, "the partition, to be lowered or taken off"
	case s.Unfit != "":
		return Waiting, "the others, to be replaced after them: " + s.Unfit
	case s.OfTarget, s.IsHalfway():
		return Updating, s.follows()
	case replaces != "":
		return Waiting, "another pod in its place, by the " + replaces
	case readiness.Closed(s.Pod):
		return Updating, "its drain"
	case before != "":
		return Waiting, before
	}
	return Waiting, "its turn"
}

// follows is what a pod waits for that has all it needs, until it is available.
func (s *State) follows() string {
	container, why := unready(s.Pod)
	switch {
	case s.Pod.Spec.NodeName == "":
		return "a node"
	case !s.Arrived && !s.Move.Observed(s.Pod):
		return "its kubelet"
	case s.Resizing:
		return strings.TrimSuffix("its CPU and memory: "+readiness.SaysOfResize(s.Pod), ": ")
	case readiness.CannotPull[why]:
		return "the image of container " + container + ": " + why
	case !s.Arrived:
		return "its containers to restart"
	case why != "":
		return "readiness of container " + container + ": " + why
	case container != "":
		return "readiness of container " + container
	case readiness.Closed(s.Pod), readiness.Unopened(s.Pod):
		return "its readiness gate"
	case s.Comes > 0:
		return fmt.Sprintf("minReadySeconds, %s more", (s.Comes + time.Second - 1).Truncate(time.Second))
	}
	return "readiness"
}

// unready is the first container that is not ready, and the kubelet's word for why, empty if it has none.
func unready(pod *corev1.Pod) (container, why string) {
	for _, c := range pod.Spec.Containers {
		status := readiness.ContainerStatus(pod, c.Name)
		switch {
		case status.Ready:
		case status.State.Waiting != nil:
			return c.Name, status.State.Waiting.Reason
		default:
			return c.Name, ""
		}
	}
	return "", ""
}
