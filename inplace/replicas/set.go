package replicas

import (
	"time"

	"github.com/stayput/stayput/inplace/apps"
)

// clockSkew is how far the API server's clock may be from a manager's.
const clockSkew = 10 * time.Second

// Set is an owned ReplicaSet with its live pods, and what shall become of it.
type Set struct {
	Rs   *apps.ReplicaSet
	Pods []*Member
	Wish Wish
	// Loan is how many of its replicas are borrowed.
	Loan int
}
