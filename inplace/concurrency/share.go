package concurrency

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace/steps"
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

// Exceeded returns the limit by which the pod may not be out of service besides those that are counted; nil if it may, or is counted.
func (s *Share) Exceeded(pod Pod) *Limit {
	for _, limit := range s.limits {
		if full := s.counted[group{limit, limit.groupOf(pod)}] >= limit.Most; full && !s.out[pod.UID] {
			return &limit
		}
	}
	return nil
}

// look is after what time to look again at pods that a limit keeps in service. Usually the leader starts a look as soon as there is room
// for them.
const look = 10 * time.Second

// Wait returns why the pod may not be taken out of service now; nil if it may, or needs no permission. Time in which others come first is
// not the workload's.
func (s *Share) Wait(pod *corev1.Pod, node *corev1.Node, now time.Time) *steps.Wait {
	if s == nil || !NeedsPermission(pod, now) {
		return nil
	}
	of := PodOf(pod, node)
	limit := s.Exceeded(of)
	if limit == nil {
		return nil
	}
	return &steps.Wait{Filter: steps.FilterLimit, Pod: pod, For: limit.Flag, Why: limit.why(of), Again: look, Shared: true, Excused: true}
}

// Reserve counts the pod as taken out of service, if it needs a permission.
func (s *Share) Reserve(pod *corev1.Pod, node *corev1.Node, now time.Time) {
	if s != nil && NeedsPermission(pod, now) {
		s.Count(PodOf(pod, node))
	}
}
