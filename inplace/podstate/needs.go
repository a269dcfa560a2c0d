package podstate

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/readiness"
)

// PodRevision is the revision that a pod's identity names.
type PodRevision struct {
	// Revision is its name; empty if it is gone.
	Revision string
	// TemplateContainers are the ordinary containers and sidecars of the revision's template. NewPods is what is known of its new pods. Change
	// is the change from its template to the update revision's; nil for the update revision itself. The pods of the revision share one Change.
	TemplateContainers []corev1.Container
	NewPods            dryrun.NewPods
	Change             *edit.Change
	// TemplateLabels and TemplateAnnotations are those of the revision's template. Only pods that keep their identity while they are partially
	// patched go back to them, so they are not set where the identity is ByLabel.
	TemplateLabels, TemplateAnnotations map[string]string
	// Marked: Stayput has marked the revision, as it does before it patches pods of it. Only pods of such revisions go back. It is not set
	// where the identity is ByLabel.
	Marked bool
	// ByMark: pods go back only where their marks confirm it, and lose their marks then. An admission policy refuses all other writes in a
	// namespace without Stayput's label.
	ByMark bool
	// Updated: this is the update revision.
	Updated bool
	// Current: pods had this revision when the update began, so that a partition may keep them there.
	Current bool
	// ByLabel: the identity is a label alone. No owner reference contradicts it.
	ByLabel bool
	// UpdateHash is the hash of the update revision; empty as long as there is none.
	UpdateHash string
}

// Needs returns what is left to do until the pod is one of the update revision, and why it cannot be done.
func (s *Work) Needs() edit.Change {
	var needs edit.Change
	if s.Change != nil {
		needs = *s.Change
	}
	needs.Containers = s.Containers
	needs = needs.WithEntries(s.entriesBack(s.Back))
	if s.unrestartable != nil {
		needs.Reasons = needs.Reasons.And(*s.unrestartable)
	}
	return needs
}

// stillDiffer returns the changes that give the pod the containers of a new pod of the update revision. A pod that has the update revision
// already needs none, whatever admission would change in a new pod, unless the pod was on its way to another revision, and goes back.
func (s *MarkedPod) stillDiffer(update dryrun.NewPods, back edit.ContainerChanges) edit.ContainerChanges {
	if s.Updated {
		return back
	}
	var planned edit.ContainerChanges
	if s.Change != nil {
		planned = s.Change.Containers
	}
	if len(s.Move.Back) > 0 && s.Move.Hash == s.UpdateHash {
		// The pod's containers were restarted for the update revision, although its identity does not say so yet. A resize is no restart.
		planned = planned.WithoutRestart()
	} else {
		// Variables may have read what yet another revision says.
		planned = planned.Reading(s.TemplateContainers, s.readEarly(back))
	}
	var unplanned edit.ContainerChanges
	own, injected := planned.ChangesTo(s.Pod, update.Containers, runs(s.Pod), s.resizes),
		unplanned.ChangesTo(s.Pod, update.Injected, runs(s.Pod), edit.Nothing)
	return append(own, injected...)
}

// resizes reports whether the update changes the container's CPU and memory: both templates set them, or a resize of them has begun
// already. The update does not undo other values, such as those of a user who resizes pods directly.
func (s *MarkedPod) resizes(container string) bool {
	return s.Change != nil && s.Change.Resizes(container) || s.Move.Resize.Of(container)
}

// runs returns a function that returns the ID of the image that a container of the pod runs.
func runs(pod *corev1.Pod) func(container string) string {
	return func(container string) string { return readiness.ContainerStatus(pod, container).ImageID }
}

// RunsWithin is how long a container has to run for the first time, for example to pull its image. Before that, it is not known which image
// it runs.
const RunsWithin = 2 * time.Minute

// whyUnrestartable returns why the pod cannot take a change that other pods of its revision can; nil if it can. As long as a container of
// the pod has yet to run, or the old containers have yet to stop after the last patch, it may be too early to know which image the
// container runs. Then whyUnrestartable returns how long to wait.
func (s *Work) whyUnrestartable(now time.Time) (*inplace.Reason, time.Duration) {
	if reason := s.Needs().Unrestartable(s.Pod); reason != nil || s.noOtherName() == "" {
		return reason, 0
	}
	begun := ptr.Deref(s.Pod.Status.StartTime, s.Pod.CreationTimestamp).Time // when its kubelet got the pod
	if grown, wait := inplace.Since(begun, RunsWithin, now); !grown && runs(s.Pod)(s.Containers.WithoutOtherName()) == "" {
		return nil, wait
	}
	if oldStopped, wait := s.Move.Killed(s.Pod, now); !oldStopped {
		return nil, wait
	}
	return &inplace.Reason{Code: inplace.CodeRestart, Message: s.noOtherName()}, 0
}

// Postponed returns why containers of the pod cannot restart now; empty if they can. A container whose last patch has not been applied
// might never restart: it may get its old image name again before its kubelet has acted on the new one.
func (s *Work) Postponed() string {
	if noOtherName := s.noOtherName(); noOtherName != "" {
		return noOtherName
	}
	if s.Containers.RestartsOnly() && !s.oldStopped {
		return "its old containers have yet to stop after the last patch"
	}
	return ""
}

// noOtherName returns why there is no other name for the image of a container that is to restart; empty if there is one.
func (s *Work) noOtherName() string {
	container := s.Containers.WithoutOtherName()
	if container == "" {
		return ""
	}
	image := runs(s.Pod)(container)
	if image == "" {
		return fmt.Sprintf(
			"container %s of pod %s has not run yet, so no other name for its image is known by which it could be restarted",
			container, s.Pod.Name)
	}
	return fmt.Sprintf("container %s of pod %s runs image %q, which has no other name by which it could be restarted",
		container, s.Pod.Name, image)
}

// rewrites returns the containers that have an image other than their template's, or had one before Stayput patched them.
func (s *MarkedPod) rewrites() edit.ContainerChanges {
	var rewritten, unplanned edit.ContainerChanges
	for change := range unplanned.ChangesTo(s.Pod, s.TemplateContainers, runs(s.Pod), edit.Nothing).NewImages() {
		if had := s.Move.Back[change.Container]; had == "" || !edit.IsNameOf(had, change.Image.To) {
			rewritten = append(rewritten, change)
		}
	}
	return rewritten
}
