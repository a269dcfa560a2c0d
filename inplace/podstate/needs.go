package podstate

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/times"
)

// Origin is the revision that a pod's identity tells of.
type Origin struct {
	// TemplateContainers are the containers of its template that live, Born what is known of its new pods, Change that from its template to the target's; nil where it is none. It is shared by the pods of the
	// revision.
	TemplateContainers []corev1.Container
	NewPods            dryrun.NewPods
	Change             *edit.Change
	// ByMark: pods go back only as their marks say, too, and lose them: without the label of the namespace a policy refuses all else.
	ByMark bool
	// Updated: it is the target itself.
	Updated bool
	// Current: pods had it when the update began, so that a partition may keep them there.
	Current bool
	// ByLabel: the identity is a label alone, which no owner contradicts.
	ByLabel bool
	// UpdateHash is that of the target; empty as long as there is none.
	UpdateHash string
}

// Needs is what is left to do until the pod is one of the target, and why it cannot be done.
func (s *State) Needs() edit.Change {
	var needs edit.Change
	if s.Change != nil {
		needs = *s.Change
	}
	needs.Containers = s.Containers
	if s.unrestartable != nil {
		needs.Reasons = needs.Reasons.And(*s.unrestartable)
	}
	return needs
}

// stillDiffer are the changes of containers that make the pod one of the target with those. One that is the target's already needs none,
// whatever admission would make of a new one, unless it was on its way elsewhere.
func (s *State) stillDiffer(update []corev1.Container) edit.ContainerChanges {
	if s.Updated {
		return s.Back
	}
	var planned edit.ContainerChanges
	if s.Change != nil {
		planned = s.Change.Containers
	}
	if s.restartedPartially() {
		planned = planned.WithoutRestart()
	}
	return planned.Becoming(s.Pod, update, s.runs, s.resizes)
}

// resizes reports whether the container's CPU and memory are for the update to change: both templates say so, or they are on their way already. What
// else they are, as by somebody who resizes pods by himself, is not fought over.
func (s *State) resizes(container string) bool {
	return s.Change != nil && s.Change.Resizes(container) || s.Move.Resizes(container)
}

// restartedPartially reports whether its containers were restarted for the target, although its identity does not say so yet. That they were resized is
// no restart.
func (s *State) restartedPartially() bool { return len(s.Move.Back) > 0 && s.Move.Hash == s.UpdateHash }

// runs is the image that the container runs, by ID.
func (s *State) runs(container string) string {
	return readiness.ContainerStatus(s.Pod, container).ImageID
}

// RunsWithin is how long a container is left to run for the first time, such as to pull its image: before, nobody can tell what it runs.
const RunsWithin = 2 * time.Minute

// whyUnrestartable is why the pod cannot take a change that others of its revision can; nil if it can. One whose container has yet to run, or which has
// yet to follow its last patch, may be too young to tell what it runs: for how much longer.
func (s *State) whyUnrestartable(now time.Time) (*inplace.Reason, time.Duration) {
	if reason := s.Containers.Unrestartable(s.Pod); reason != nil || s.nameless() == "" {
		return reason, 0
	}
	if grown, wait := times.Since(s.begun(), RunsWithin, now); !grown && s.runs(s.Containers.Nameless()) == "" {
		return nil, wait
	}
	if oldStopped, wait := s.Move.Killed(s.Pod, now); !oldStopped {
		return nil, wait
	}
	return &inplace.Reason{Code: inplace.CodeRestart, Message: s.nameless()}, 0
}

// begun is since when its kubelet has it; as long as none does, since when it is there.
func (s *State) begun() time.Time {
	if began := s.Pod.Status.StartTime; began != nil {
		return began.Time
	}
	return s.Pod.CreationTimestamp.Time
}

// Postponed is why containers of the pod cannot restart now; empty if they can. One that is on its way might never restart: before its kubelet has
// acted on one name it may get the other again.
func (s *State) Postponed() string {
	if nameless := s.nameless(); nameless != "" {
		return nameless
	}
	if s.Containers.Renew() && len(s.Move.Containers) > 0 && !s.oldStopped {
		return "its containers have yet to follow the last patch"
	}
	return ""
}

// nameless is why there is no other name for a container that is to restart; empty if there is.
func (s *State) nameless() string {
	container := s.Containers.Nameless()
	switch {
	case container == "":
		return ""
	case s.runs(container) == "":
		return fmt.Sprintf("container %s of pod %s has yet to run, and until then there is no other name for its image, by which it would restart", container, s.Pod.Name)
	}
	return fmt.Sprintf("container %s of pod %s runs image %q, for which there is no other name, by which it would restart", container, s.Pod.Name,
		s.runs(container))
}

// rewrites are the containers that have another image than their template's, or had before they got ours.
func (s *State) rewrites() edit.ContainerChanges {
	var rewritten, unplanned edit.ContainerChanges
	for change := range unplanned.Becoming(s.Pod, s.TemplateContainers, s.runs, edit.Nothing).NewImages() {
		if had := s.Move.Back[change.Container]; had == "" || !edit.IsNameOf(had, change.Image.To) {
			rewritten = append(rewritten, change)
		}
	}
	return rewritten
}
