package concurrency

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Share is what limits leave. It counts the pods that a plan takes. A nil Share leaves all.
type Share struct {
	limits  Limits
	counted map[group]int
	out     map[types.UID]bool
}

// group are the pods that a limit counts together.
type group struct {
	limit Limit
	name  string
}

// Share returns what the limits leave besides these pods; nil if there are no limits.
func (l Limits) Share(restarting ...Pod) *Share {
	if len(l) == 0 {
		return nil
	}
	s := &Share{l, map[group]int{}, map[types.UID]bool{}}
	for _, pod := range restarting {
		s.Count(pod)
	}
	return s
}

// Count counts the pod as out of service, once.
func (s *Share) Count(pod Pod) {
	if s.out[pod.UID] {
		return
	}
	s.out[pod.UID] = true
	for _, limit := range s.limits {
		s.counted[group{limit, limit.groupOf(pod)}]++
	}
}

// Exceeded returns why the pod may not be out of service besides those that are counted; the zero Refusal if it may, or is counted.
func (s *Share) Exceeded(pod Pod) Refusal {
	for _, limit := range s.limits {
		if full := s.counted[group{limit, limit.groupOf(pod)}] >= limit.Most; full && !s.out[pod.UID] {
			return limit.refusal(pod)
		}
	}
	return Refusal{}
}

// Refusal returns why the pod may not be taken out of service now; the zero Refusal if it may, or needs no permission.
func (s *Share) Refusal(pod *corev1.Pod, node *corev1.Node, now time.Time) Refusal {
	if s == nil || !NeedsPermission(pod, now) {
		return Refusal{}
	}
	return s.Exceeded(PodOf(pod, node))
}

// Take counts the pod as taken out of service, if it needs a permission.
func (s *Share) Take(pod *corev1.Pod, node *corev1.Node, now time.Time) {
	if s != nil && NeedsPermission(pod, now) {
		s.Count(PodOf(pod, node))
	}
}
