package podstate

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/patches"
)

// A pod is partially patched when one write of its move has been made and the last one has not. Its spec no longer matches its identity,
// however much of it was written, and for whatever reason it was not written at once. The leader may die just then, and the user may undo
// the update. So the pod itself shows that something is left to do:
//
//   - A pod of a Deployment keeps its identity (label and owner), because no controller may count it as updated until its old containers
//     have stopped. It also keeps its other labels, apart from those that variables of the restarted containers read. The mark names the
//     containers that were to change, and these labels and annotations. What they go back to when the update falls back is in the pod's own
//     ReplicaSet, and in a dry run of a pod of that ReplicaSet. It never comes from the mark: any client may have written an annotation.
//     Nor does the pod go back if Stayput has not marked the ReplicaSet.
//   - A pod of a DaemonSet or StatefulSet gets an identity that no revision has, together with all else it needs. If Stayput stops running,
//     the native controller replaces the pod. If it kept its old identity, an undo would make the native controller mistake it for an
//     updated pod. The mark (Move.Hash) names the pod's revision: the one that the pod moves to, or, when only a resize was noted, the one
//     that it had.

const (
	// HashPartial stands in place of the hash of a partially patched pod. No revision has this hash.
	HashPartial = "updating-in-place"
)

// Begun reports whether the pod has the update revision, or a part of it.
func (s *MarkedPod) Begun() bool { return s.Updated || s.PartiallyPatched() }

// PartiallyPatched reports whether the pod is partially patched.
func (s *MarkedPod) PartiallyPatched() bool {
	if s.ByLabel {
		return HasPartialHash(s.Pod)
	}
	return s.Move.PartiallyPatched()
}

// revert returns the changes that give the containers again what the pod's identity says. A container may have the name of its image that
// its own revision has, because it ran the image under another name before. It restarts all the same if its variables read what goes back.
// revert returns nothing where the mark does not confirm that, if admission's answer about new pods is unknown or must not be followed.
// Nor does it where another client has made up the mark: no pod of that ReplicaSet was patched, or none that policies may leave alone.
func (s *MarkedPod) revert() edit.ContainerChanges {
	if !s.ByLabel && !s.Marked || IsPrePullPod(s.Pod) {
		return nil
	}
	doubt := s.NewPods.Unknown != "" || s.NewPods.UpdateRevision != "" && s.ByMark
	if doubt && !s.Move.MatchesRevision(s.NewPods.Containers) {
		return nil
	}
	back := s.Move.Revert(s.Pod, s.NewPods.Containers)
	if s.ByMark {
		return back // the policy that bounds a pod's way back refuses other names
	}
	return back.Renaming(s.Pod, s.earlyReaders(), runs(s.Pod))
}

// earlyReaders returns the containers of the pod's own revision that were restarted and read what the pod got before its identity.
func (s *MarkedPod) earlyReaders() []corev1.Container {
	if s.ByLabel {
		return nil
	}
	var all []corev1.Container
	for i, container := range s.TemplateContainers {
		if s.Move.Back[container.Name] != "" && !s.Move.Read.Of(s.TemplateContainers[i:i+1]).None() {
			all = append(all, container)
		}
	}
	return all
}

// BackChange returns the change that makes a partially patched pod again what its identity says.
func (s *Work) BackChange() edit.Change {
	if len(s.Back) == 0 {
		return edit.Change{}
	}
	return edit.Change{Containers: s.Back}.WithEntries(s.entriesBack(s.Back))
}

// readEarly returns the labels and annotations that the pod got before its identity, because variables read them. It names only those
// that variables of the pod's own revision read, because other clients may have written the mark. Back are the changes of its way back.
func (s *MarkedPod) readEarly(back edit.ContainerChanges) edit.ReadKeys {
	if s.ByLabel || len(s.Move.Back) == 0 || s.Updated && len(back) == 0 {
		return edit.ReadKeys{}
	}
	return s.Move.Read.Of(s.TemplateContainers)
}

// entriesBack returns these labels and annotations as the pod's own revision has them.
func (s *MarkedPod) entriesBack(back edit.ContainerChanges) (read edit.ReadKeys, labels, annotations []patches.EntryChange) {
	read = s.readEarly(back)
	return read, entriesIn(s.TemplateLabels, read.Labels), entriesIn(s.TemplateAnnotations, read.Annotations)
}

func entriesIn(template map[string]string, keys []string) []patches.EntryChange {
	var all []patches.EntryChange
	for _, key := range keys {
		value, has := template[key]
		all = append(all, patches.EntryChange{Key: key, Value: value, Removing: !has})
	}
	return all
}

// HasPartialHash reports whether the pod has the identity that no revision has.
func HasPartialHash(pod *corev1.Pod) bool {
	return pod.Labels[inplace.LabelRevisionHash] == HashPartial
}
