package podstate

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/readiness"
)

// PodPhase is how far one pod is.
type PodPhase string

// The progress of pods.
const (
	Updated     PodPhase = "updated"      // it is what it should be, and available
	Updating    PodPhase = "updating"     // it is being drained or resized, restarts or starts
	Waiting     PodPhase = "waiting"      // its update has not begun
	AtPartition PodPhase = "at partition" // by the partition, as it is
)

// PodProgress is what there is to tell people of one pod.
type PodProgress struct {
	Pod *corev1.Pod
	// Revision is the name of the one that the pod's identity tells of; empty if that is gone.
	Revision string
	Phase    PodPhase
	// Awaits is what has to come next, one clause; empty if nothing has to.
	Awaits string
}

// Progress of the pod. Replaces is who makes another pod in its place, empty if it is updated in place; before is what keeps it from its turn
// besides the others, one clause, empty if nothing does.
func (s *State) Progress(revision, replaces, before string) PodProgress {
	progress, awaits := s.progress(replaces, before)
	return PodProgress{Pod: s.Pod, Revision: revision, Phase: progress, Awaits: awaits}
}

func (s *State) progress(replaces, before string) (PodPhase, string) {
	switch {
	case s.Removing:
		return Updating, "its removal, as a surge pod"
	case s.Updated && !s.Needs().Left() && s.Available:
		return Updated, ""
	case s.AtPartition && replaces == "":
		return AtPartition, "the partition, to be lowered or taken off"
	case s.Infeasible != "":
		return Waiting, "the others, to be replaced after them: " + s.Infeasible
	case s.Updated, s.PartiallyPatched():
		return Updating, s.awaits()
	case replaces != "":
		return Waiting, "another pod in its place, by the " + replaces
	case readiness.Closed(s.Pod):
		return Updating, "its drain"
	case before != "":
		return Waiting, before
	}
	return Waiting, "its turn"
}

// awaits is what a pod waits for that has all it needs, until it is available.
func (s *State) awaits() string {
	container, why := unready(s.Pod)
	switch {
	case s.Pod.Spec.NodeName == "":
		return "a node"
	case !s.Applied && !s.Move.Observed(s.Pod):
		return "its kubelet"
	case s.Resizing:
		return strings.TrimSuffix("its CPU and memory: "+readiness.SaysOfResize(s.Pod), ": ")
	case readiness.CannotPull[why]:
		return "the image of container " + container + ": " + why
	case !s.Applied:
		return "its containers to restart"
	case why != "":
		return "readiness of container " + container + ": " + why
	case container != "":
		return "readiness of container " + container
	case readiness.Closed(s.Pod), readiness.Unopened(s.Pod):
		return "its readiness gate"
	case s.AvailableIn > 0:
		return fmt.Sprintf("minReadySeconds, %s more", (s.AvailableIn + time.Second - 1).Truncate(time.Second))
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
