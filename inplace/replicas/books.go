package replicas

import (
	"github.com/stayput/stayput/inplace/ledger"
)

// Becomes is how many replicas the ReplicaSet gets.
func (s *Set) Becomes(balance ledger.Balance) int { return s.Size() + balance[s.Rs.Name] }
