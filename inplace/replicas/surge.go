package replicas

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// Surging reports whether replicas of the ReplicaSet are borrowed.
func Surging(rs *apps.ReplicaSet) bool { return notedSurge(rs) > 0 }

func notedSurge(rs *apps.ReplicaSet) int {
	n, err := strconv.Atoi(rs.Labels[inplace.LabelSurgeReplicas])
	if err != nil {
		return 0
	}
	return max(0, n)
}

// SurgeNote is what LabelBorrowed says of a loan; nothing of none.
func SurgeNote(surge int) string {
	if surge == 0 {
		return ""
	}
	return strconv.Itoa(surge)
}

// MayBeDeleted reports whether a pod whose ReplicaSet is settling may be deleted all the same: it was borrowed, is given back, and clients
// have been told to leave it, if it could tell them, or if it serves at all.
func MayBeDeleted(pod *corev1.Pod) bool {
	return readiness.Removing(pod) && (!readiness.Gated(pod) || readiness.Closed(pod) || !conditions.IsTrue(pod, corev1.PodReady))
}

// NotedSurge is what may be borrowed: so the note says, or somebody else has added it.
func (s *Set) NotedSurge() int { return notedSurge(s.Rs) + s.surged() }

// NotesExcessSurge reports whether more is noted than is borrowed by now.
func (s *Set) NotesExcessSurge() bool { return s.NotedSurge() > s.Surge }

// SurgeAtMost is how many of its replicas may be borrowed. Once its controller knows all its pods, none is that was moved: what is noted of those that
// somebody else has scaled away would be kept for nobody, and nobody would get a turn.
func (s *Set) SurgeAtMost() int {
	if !s.Seen() {
		return max(s.Size(), len(s.Pods))
	}
	return len(s.SurgePods()) + len(s.Youngest()) + s.Missing()
}

// SurgePods are the pods marked: those that go already first, most of all those that may, then those that do not serve.
func (s *Set) SurgePods() []*Pod {
	var marked []*Pod
	for _, m := range s.Pods {
		if m.Surge {
			marked = append(marked, m)
		}
	}
	rank := func(m *Pod) int {
		switch {
		case MayBeDeleted(m.Pod) && !m.Available:
			return 0
		case MayBeDeleted(m.Pod):
			return 1
		case m.Removing:
			return 2
		case !m.Available:
			return 3
		}
		return 4
	}
	slices.SortStableFunc(marked, func(a, b *Pod) int { return rank(a) - rank(b) })
	return marked
}

// ReadySurge counts its pods marked that serve, even if not yet for minReadySeconds.
func (s *Set) ReadySurge() int {
	return s.count(func(m *Pod) bool { return m.Surge && m.Ready() })
}

// Youngest are its pods that are not marked, and were not moved: those were there before anything was borrowed.
func (s *Set) Youngest() []*Pod {
	var pods []*Pod
	for _, m := range s.Pods {
		if !m.Surge && m.Pod.Annotations[inplace.AnnotationMove] == "" {
			pods = append(pods, m)
		}
	}
	slices.SortStableFunc(pods, func(a, b *Pod) int { return b.Pod.CreationTimestamp.Compare(a.Pod.CreationTimestamp.Time) })
	return pods
}

// Removals counts its pods that are given back.
func (s *Set) Removals() int {
	going := 0
	for _, m := range s.Pods {
		if m.Removing {
			going++
		}
	}
	return going
}

// Ending counts its pods that are given back and for which replicas may have been lowered.
func (s *Set) Ending() int {
	return s.count(func(m *Pod) bool { return m.Removing && m.mayBeLowered() })
}

// mayBeLowered: replicas are lowered for a pod that is given back when it is drained, or cannot be.
func (m *Pod) mayBeLowered() bool { return readiness.Closed(m.Pod) || !readiness.Gated(m.Pod) }

// Precedes reports whether this pod is deleted before the other, which may go: by what ActivePodsWithRanks compares before the costs.
func (m *Pod) Precedes(other *Pod) bool {
	placed := func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" }
	pending := func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodPending }
	switch {
	case placed(m.Pod) != placed(other.Pod):
		return placed(other.Pod)
	case pending(m.Pod) != pending(other.Pod):
		return pending(m.Pod)
	}
	return !readiness.Gated(other.Pod) && other.Ready() && !m.Ready() // one with a gate is closed and will not be Ready
}

// MarkSurge marks the pod as borrowed.
func (m *Pod) MarkSurge() steps.PatchPod {
	return m.Annotated("surge pod", [2]string{inplace.AnnotationSurgePod, "true"})
}

// MarkForRemoval makes the pod the first that its controller deletes.
func (m *Pod) MarkForRemoval() steps.PatchPod {
	return m.Annotated("surge pod to remove", [2]string{inplace.AnnotationSurgePod, "true"}, [2]string{corev1.PodDeletionCost, readiness.LowestDeletionCost})
}

// UnmarkSurge makes the pod one like the others, with the deletion cost its template gave it.
func (m *Pod) UnmarkSurge() steps.PatchPod {
	entries := [][2]string{{inplace.AnnotationSurgePod, ""}}
	if m.Removing {
		entries = append(entries, [2]string{corev1.PodDeletionCost, m.Owner.Rs.Spec.Template.Decoded().Annotations[corev1.PodDeletionCost]})
	}
	return m.Annotated("stays", entries...)
}
