package deployments

import (
	"time"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
)

// Set is an owned ReplicaSet with its live pods.
type Set struct {
	Rs   *apps.ReplicaSet
	Pods []*Pod
	// Surge is how many of its replicas are for surge pods.
	Surge int
}

func (s *Set) count(which func(*Pod) bool) int {
	count := 0
	for _, m := range s.Pods {
		if which(m) {
			count++
		}
	}
	return count
}

// Size returns the number of replicas that the ReplicaSet controller works towards.
func (s *Set) Size() int { return int(apps.Replicas(s.Rs)) }

// Becomes returns how many replicas the ReplicaSet gets.
func (s *Set) Becomes(balance Balance) int { return s.Size() + balance[s.Rs.Name] }

// Seen reports whether the ReplicaSet controller has seen the replicas and all pods of the ReplicaSet.
func (s *Set) Seen() bool {
	return apps.Observed(s.Rs) && int(s.Rs.Status.Replicas) == len(s.Pods)
}

// InUse reports whether the ReplicaSet has or wants pods.
func (s *Set) InUse() bool { return apps.InUse(s.Rs) || len(s.Pods) > 0 }

// Available counts the available pods.
func (s *Set) Available() int {
	return s.count(func(m *Pod) bool { return m.Available })
}

// Unready counts the pods that do not serve.
func (s *Set) Unready() int {
	return s.count(func(m *Pod) bool { return !m.Ready() })
}

// countsUnready reports whether the ReplicaSet's status has more ready or available pods than there are. The Deployment controller knows
// pods from there alone, and the ReplicaSet controller writes the status later than a kubelet reports.
func (s *Set) countsUnready(now time.Time) bool {
	available := s.count(func(m *Pod) bool {
		available, _ := readiness.AvailableAt(m.Pod, s.Rs.Spec.MinReadySeconds, now)
		return available
	})
	return int(s.Rs.Status.ReadyReplicas) > len(s.Pods)-s.Unready() || int(s.Rs.Status.AvailableReplicas) > available
}

// Safe returns how many of the pods that serve the ReplicaSet controller would leave.
func (s *Set) Safe(serves func(*podstate.State) bool) int {
	return min(s.count(func(m *Pod) bool { return serves(&m.State) }), s.Size())
}

// ToReplace counts the pods to replace: see Pod.ToReplace.
func (s *Set) ToReplace() int {
	return s.count(func(m *Pod) bool { return m.ToReplace })
}

// Failing reports whether the ReplicaSet controller cannot create or delete pods.
func (s *Set) Failing() bool { return apps.FailureOf(s.Rs) != nil }

// NoRestart returns the pods that could move without a restart: only labels change, or they already run the containers of the new
// ReplicaSet. Pods that do not serve come first: when replicas are lowered for one of them, they must not be counted for another pod.
func (s *Set) NoRestart() []*Pod {
	var idle, serving []*Pod
	for _, m := range s.Pods {
		switch {
		case m.Surge || !m.NoRestart():
		case m.Ready():
			serving = append(serving, m)
		default:
			idle = append(idle, m)
		}
	}
	return append(idle, serving...)
}
