package replicas

import (
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/ledger"
)

// Set is an owned ReplicaSet with its live pods, and what shall become of it.
type Set struct {
	Rs     *apps.ReplicaSet
	Pods   []*Pod
	Wanted Wanted
	// Surge is how many of its replicas are borrowed.
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

// Size is what its controller works towards.
func (s *Set) Size() int { return int(apps.Replicas(s.Rs)) }

// Becomes is how many replicas the ReplicaSet gets.
func (s *Set) Becomes(balance ledger.Balance) int { return s.Size() + balance[s.Rs.Name] }

// Seen reports whether its controller knows its replicas and its pods.
func (s *Set) Seen() bool {
	return apps.Observed(s.Rs) && int(s.Rs.Status.Replicas) == len(s.Pods)
}

// InUse reports whether it has or wants pods.
func (s *Set) InUse() bool { return apps.InUse(s.Rs) || len(s.Pods) > 0 }

// Available counts its pods that are.
func (s *Set) Available() int {
	return s.count(func(m *Pod) bool { return m.Available })
}

// Unready counts its pods that do not serve.
func (s *Set) Unready() int {
	return s.count(func(m *Pod) bool { return !m.Ready() })
}

// Safe is how many available pods its controller would leave.
func (s *Set) Safe() int { return min(s.Available(), s.Size()) }

// ToReplace counts its pods that are: see Member.
func (s *Set) ToReplace() int {
	return s.count(func(m *Pod) bool { return m.ToReplace })
}

// Failing reports whether its controller cannot create or delete pods.
func (s *Set) Failing() bool { return conditions.FailureOf(s.Rs) != nil }

// NoRestart are the pods that could move without a restart: only labels change, or their containers are the target's already. Those that
// do not serve come first: replicas lowered for one of them must not be taken for another's.
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
