package member

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/readiness"
)

// Origin is the revision that a pod's identity tells of.
type Origin struct {
	// Own are the containers of its template, change that from its template to the target's.
	Own    []corev1.Container
	Change edit.Change
	// OfTarget: it is the target itself.
	OfTarget bool
	// ByLabel: the identity is a label alone, which no owner contradicts.
	ByLabel bool
	// TargetHash is that of the target; empty as long as there is none.
	TargetHash string
}

// stillNeeds is the change that makes the pod one of the target with those containers. One that is the target's already needs nothing,
// whatever admission would make of a new one, unless it was on its way elsewhere.
func (s *State) stillNeeds(target []corev1.Container) edit.Change {
	needs := s.Change
	if s.restartedHalfway() {
		needs = needs.WithoutRestart()
	}
	needs.Containers = needs.Becoming(s.Pod, target, s.running())
	if s.OfTarget {
		needs.Containers = s.Back.Containers
	}
	return needs
}

// restartedHalfway tells whether its containers were restarted for the target, although its identity does not say so yet.
func (s *State) restartedHalfway() bool { return s.Back.Left() && s.Move.Hash == s.TargetHash }

// running are the images that its containers run, by ID.
func (s *State) running() map[string]string {
	ids := map[string]string{}
	for _, status := range s.Pod.Status.ContainerStatuses {
		ids[status.Name] = status.ImageID
	}
	return ids
}

// unrestartable is why the pod cannot take a change that others of its template can; nil if it can. One that has not started, or has yet to follow its
// last patch, may be too young to tell what it runs: for how much longer.
func (s *State) unrestartable(now time.Time) (*inplace.Reason, time.Duration) {
	if reason := s.Needs.Unrestartable(s.Pod); reason != nil || s.nameless() == "" {
		return reason, 0
	}
	if young, wait := s.Starting(now); young {
		return nil, wait
	}
	if followed, wait := s.Move.Killed(s.Pod, now); !followed {
		return nil, wait
	}
	return &inplace.Reason{Code: inplace.CodeRestart, Message: s.nameless()}, 0
}

// Postponed is why containers of the pod cannot restart now; empty if they can. One that is on its way might never restart: before its kubelet has
// acted on one name it may get the other again.
func (s *State) Postponed() string {
	if nameless := s.nameless(); nameless != "" {
		return nameless
	}
	if s.renews() && len(s.Move.Containers) > 0 && !s.followed {
		return "its containers have yet to follow the last patch"
	}
	return ""
}

// nameless is why there is no other name for a container that is to restart; empty if there is.
func (s *State) nameless() string {
	container := s.Needs.Nameless()
	if container == "" {
		return ""
	}
	return fmt.Sprintf("container %s of pod %s runs image %q, for which there is no other name, by which it would restart", container, s.Pod.Name,
		readiness.ContainerStatus(s.Pod, container).ImageID)
}

// rewrites are the containers that have another image than their template's, unless it is ours.
func (s *State) rewrites() []edit.ContainerChange {
	var rewritten []edit.ContainerChange
	for change := range (edit.Change{Containers: edit.Change{}.Becoming(s.Pod, s.Own, nil)}).NewImages() {
		if s.Move.Back[change.Container] == "" {
			rewritten = append(rewritten, change)
		}
	}
	return rewritten
}
