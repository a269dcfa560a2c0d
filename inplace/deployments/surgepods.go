package deployments

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// Surging reports whether the ReplicaSet has replicas for surge pods.
func Surging(rs *apps.ReplicaSet) bool { return notedSurge(rs) > 0 }

func notedSurge(rs *apps.ReplicaSet) int {
	n, err := strconv.Atoi(rs.Labels[inplace.LabelSurgeReplicas])
	if err != nil {
		return 0
	}
	return max(0, n)
}

// SurgeNote returns the value of LabelSurgeReplicas for that many surge replicas; empty for none.
func SurgeNote(surge int) string {
	if surge == 0 {
		return ""
	}
	return strconv.Itoa(surge)
}

// MayBeDeleted reports whether a pod may be deleted although its ReplicaSet is updating. It may if it is a surge pod that is being removed,
// and that is out of service.
func MayBeDeleted(pod *corev1.Pod) bool {
	return readiness.Removing(pod) && !apps.IsTrue(pod, corev1.PodReady)
}

// NotedSurge returns how many replicas may be for surge pods: those that the label notes, and those that another client has added.
func (s *Set) NotedSurge() int { return notedSurge(s.Rs) + s.surged() }

// NotesExcessSurge reports whether the label notes more surge replicas than there are.
func (s *Set) NotesExcessSurge() bool { return s.NotedSurge() > s.Surge }

// SurgeAtMost returns how many of the replicas may be for surge pods. Once the ReplicaSet controller has seen all pods, no pod that was
// moved counts as a surge pod. If another client has scaled surge pods away, a note of them would otherwise reserve replicas for pods that
// do not exist, and no pod would get a turn.
func (s *Set) SurgeAtMost() int {
	if !s.Seen() {
		return max(s.Size(), len(s.Pods))
	}
	return len(s.SurgePods()) + len(s.Youngest()) + s.Missing()
}

// CountSurge counts the surge replicas of each ReplicaSet. They are those that are noted, unless the native controller has lowered the sum
// since, or the user now wants as many pods. Then surge pods become ordinary pods; those of the new ReplicaSet first, where pods are to be
// anyway. Marked pods count first: the note outlasts a surge pod that was removed, until the controller has seen the removal. An old pod
// that is marked for removal counts without a note: a surge pod has taken its place (replace.go).
func (sets Sets) CountSurge() {
	left := max(0, sets.Total()-sets.Wanted)
	take := func(s *Set, most int) {
		more := min(left, max(0, min(s.SurgeAtMost(), most)-s.Surge))
		s.Surge, left = s.Surge+more, left-more
	}
	newLast := sets.Old()
	if sets.New != nil {
		newLast = append(newLast, sets.New)
	}
	for _, s := range newLast {
		if s != sets.New {
			take(s, s.Ending())
		}
		take(s, min(s.NotedSurge(), len(s.SurgePods())))
	}
	for _, s := range newLast {
		take(s, s.NotedSurge())
	}
}

// UnmarkedSurge reports whether there is a surge pod that is not marked yet. Until it is, it must not be moved like the other pods.
func (sets Sets) UnmarkedSurge() bool {
	return sets.any(func(s *Set) bool {
		unmarked := s.Surge - len(s.SurgePods())
		if s == sets.New {
			unmarked -= s.Missing()
		}
		return unmarked > 0
	})
}

// SurgePods returns the pods marked as surge pods, in this order: those that are being removed (first of all those that may be deleted),
// those that are not available, then all others.
func (s *Set) SurgePods() []*Pod {
	var marked []*Pod
	for _, m := range s.Pods {
		if m.Surge {
			marked = append(marked, m)
		}
	}
	rank := func(m *Pod) int {
		switch {
		case MayBeDeleted(m.Pod):
			return 0
		case m.Removing:
			return 1
		case !m.Available:
			return 2
		}
		return 3
	}
	slices.SortStableFunc(marked, func(a, b *Pod) int { return rank(a) - rank(b) })
	return marked
}

// Youngest returns the pods that are neither marked as surge pods nor were moved, youngest first. A moved pod existed before any surge pod.
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

// Ending counts the surge pods that are being removed and for which replicas may have been lowered.
func (s *Set) Ending() int {
	return s.count(func(m *Pod) bool { return m.Removing })
}

// Precedes reports whether the ReplicaSet controller deletes this pod before the other, which may be deleted. It compares what
// ActivePodsWithRanks compares before the deletion costs.
func (m *Pod) Precedes(other *Pod) bool {
	placed := func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" }
	pending := func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodPending }
	switch {
	case placed(m.Pod) != placed(other.Pod):
		return placed(other.Pod)
	case pending(m.Pod) != pending(other.Pod):
		return pending(m.Pod)
	}
	return false // the other pod is not Ready either
}

// MarkForRemoval returns the patch that makes the pod the first that the ReplicaSet controller deletes.
func (m *Pod) MarkForRemoval() steps.PatchPod {
	return m.Annotated("surge pod to remove",
		[2]string{inplace.AnnotationSurgePod, "true"}, [2]string{corev1.PodDeletionCost, readiness.LowestDeletionCost})
}

// UnmarkSurge returns the patch that makes a surge pod an ordinary pod, with the deletion cost of its template.
func (m *Pod) UnmarkSurge() steps.PatchPod {
	entries := [][2]string{{inplace.AnnotationSurgePod, ""}}
	if m.Removing {
		entries = append(entries, [2]string{corev1.PodDeletionCost, m.Owner.Rs.Spec.Template.Decoded().Annotations[corev1.PodDeletionCost]})
	}
	return m.Annotated("stays", entries...)
}

// markSurgePods marks as many pods as there are surge replicas with pods. Stayput cannot tell surge pods from the other pods that the
// controller created meanwhile, and need not: all of them are younger than the update.
func (s *Set) markSurgePods() []steps.PatchPod {
	var patches []steps.PatchPod
	marked := s.SurgePods()
	// Surge pods whose replicas were removed already may still exist; their controller decides which of the marked pods it deletes. If one
	// too many were marked, it might choose the one that serves again, whose deletion is held.
	for _, m := range marked[min(len(marked), s.Surge+s.Surplus()):] {
		patches = append(patches, m.UnmarkSurge())
	}
	if !s.Seen() {
		return patches
	}
	young, unmarked := s.Youngest(), max(0, s.Surge-len(marked)-s.Missing())
	for _, m := range young[:min(len(young), unmarked)] {
		patches = append(patches, m.Annotated("surge pod", [2]string{inplace.AnnotationSurgePod, "true"}))
	}
	return patches
}

// removeFirst removes, in place of a surge pod that may go, any pod that their controller deletes before it whatever the deletion costs
// are. The controller would try to delete that pod, which is held. And where the nodes are full, that pod may be waiting for the very
// room that the surge pod takes.
func (s *Set) removeFirst() []steps.PatchPod {
	var patches []steps.PatchPod
	going := slices.DeleteFunc(slices.Clone(s.Pods), func(m *Pod) bool { return !MayBeDeleted(m.Pod) })
	for _, m := range s.Pods {
		if !m.Removing && slices.ContainsFunc(going, m.Precedes) {
			patches = append(patches, m.MarkForRemoval())
		}
	}
	return patches
}
