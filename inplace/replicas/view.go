package replicas

import (
	"github.com/stayput/stayput/inplace/apps"
)

// Size is what its controller works towards.
func (s *Set) Size() int { return int(apps.Replicas(s.Rs)) }

// Surplus is how many pods its controller would delete, were that not held.
func (s *Set) Surplus() int { return max(0, len(s.Pods)-s.Size()) }

func (s *Set) count(which func(*Member) bool) int {
	count := 0
	for _, m := range s.Pods {
		if which(m) {
			count++
		}
	}
	return count
}

func (s *Set) Available() int {
	return s.count(func(m *Member) bool { return m.Available })
}

func (s *Set) Unready() int {
	return s.count(func(m *Member) bool { return !m.Ready() })
}

// Safe is how many available pods its controller would leave.
func (s *Set) Safe() int { return min(s.Available(), s.Size()) }

// Observed: its controller knows its replicas.
func (s *Set) Observed() bool { return apps.Observed(s.Rs) }

// Seen: its controller knows its replicas and its pods.
func (s *Set) Seen() bool {
	return s.Observed() && int(s.Rs.Status.Replicas) == len(s.Pods)
}

// InUse: it has or wants pods.
func (s *Set) InUse() bool { return apps.InUse(s.Rs) || len(s.Pods) > 0 }
