package podstate

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/readiness"
)

// PodPhase is the phase of one pod in an update.
type PodPhase string

// The phases of pods.
const (
	Updated     PodPhase = "updated"      // it is as it should be, and available
	Updating    PodPhase = "updating"     // it is drained or resized, or it restarts or starts
	Waiting     PodPhase = "waiting"      // its update has not begun
	AtPartition PodPhase = "at partition" // the partition keeps it as it is
)

// PodProgress is what users are told of one pod.
type PodProgress struct {
	Pod *corev1.Pod
	// Revision is the name of the revision that the pod's identity names; empty if that revision is gone.
	Revision string
	Phase    PodPhase
	// Awaits is what has to come next, one clause; empty if nothing has to.
	Awaits string
}

// Progress returns the progress of the pod. Replaces names the controller that creates another pod in its place; empty if the pod is
// updated in place. Before is what the pod waits for before its turn, one clause; empty for nothing but its turn.
func (s *State) Progress(replaces, before string) PodProgress {
	progress, awaits := s.progress(replaces, before)
	return PodProgress{Pod: s.Pod, Revision: s.Revision, Phase: progress, Awaits: awaits}
}

func (s *State) progress(replaces, before string) (PodPhase, string) {
	switch asking := AskingOf(s); {
	case s.Removing:
		return Updating, "its removal, as a surge pod"
	case s.Updated && asking.Next != nil:
		return asking.progress()
	case s.Updated && !s.Needs().Left() && s.Available:
		return Updated, ""
	case s.Kept, s.AtPartition && replaces == "":
		return AtPartition, before
	case s.Infeasible != "":
		return Waiting, replacement(replaces) + ": " + s.Infeasible
	case s.Updated, s.PartiallyPatched():
		return Updating, s.awaits()
	case replaces != "":
		return Waiting, replacement(replaces)
	case readiness.Out(s.Pod):
		return Updating, s.awaitsPatch()
	case before != "":
		return Waiting, before
	case s.Unreachable:
		return Waiting, "its node, which is unreachable"
	}
	return Waiting, "its turn"
}

// replacement returns what a pod waits for that is replaced. Without a controller that replaces it now, other pods come first, or its turn
// does: that differs between kinds.
func replacement(by string) string {
	if by == "" {
		return "its turn to be replaced"
	}
	return "its replacement by the " + by
}

// awaits returns what a pod that has all it needs waits for until it is available.
func (s *State) awaits() string {
	container, why := unready(s.Pod)
	switch {
	case s.Pod.Spec.NodeName == "":
		return "a node"
	case !s.Applied && !s.Move.Observed(s.Pod):
		return "its kubelet"
	case s.Resizing:
		return strings.TrimSuffix("its CPU and memory: "+readiness.ResizeMessage(s.Pod), ": ")
	case readiness.CannotPull[why]:
		return "the image of container " + container + ": " + why
	case !s.Applied:
		return "its containers to restart"
	case why != "":
		return "readiness of container " + container + ": " + why
	case container != "":
		return "readiness of container " + container
	case s.AvailableIn > 0:
		return fmt.Sprintf("being Ready for %s more", wholeSeconds(s.AvailableIn))
	}
	return "readiness"
}

// backsOff are reasons of a kubelet that waits before it tries again to start a container, besides those of readiness.CannotPull.
var backsOff = map[string]bool{"CrashLoopBackOff": true, "CreateContainerConfigError": true, "CreateContainerError": true}

// Failing returns what a pod that has the update revision, or a part of it, waits for, if its kubelet has failed and waits before it tries
// again; empty if not.
func (s *State) Failing() string {
	_, why := unready(s.Pod)
	waits := backsOff[why] || readiness.CannotPull[why]
	if !waits || !s.Begun() || s.Available {
		return ""
	}
	return s.awaits()
}

// unready returns the first container that is not ready, and the kubelet's reason, empty if the kubelet gives none.
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
