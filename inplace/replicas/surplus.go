package replicas

import (
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/revisions"
)

// Surplus is how many pods its controller would delete, were that not held.
func (s *Set) Surplus() int { return max(0, len(s.Pods)-s.Size()) }

// Missing is how many pods its controller has yet to create, or cannot.
func (s *Set) Missing() int { return max(0, s.Size()-len(s.Pods)) }

// Idle is how many pods its controller deletes before any that is Ready (getPodsToDelete in
// pkg/controller/replicaset/replica_set.go). A pod whose kubelet has not seen that its gate is closed is Ready to it like others.
func (s *Set) Idle() int {
	return max(0, s.Size()-len(s.Pods)+s.Unready())
}

// Staying is how many of its pods are to be counted: those leaving are on their way to the target, and those given back to their end, once
// replicas may have been lowered for them.
func (s *Set) Staying(leaving int) int {
	return len(s.Pods) - leaving - min(s.Ending(), s.Surplus())
}

// SurplusPasses reports whether the ReplicaSet has too many pods only until our next step: those that leave are about to, and for those that have come
// it is about to be raised. Its controller need not ask for them to be deleted.
func SurplusPasses(rs *apps.ReplicaSet, live int) bool {
	return revisions.Updating(rs) && live > int(apps.Replicas(rs))
}

// Full reports whether a ReplicaSet between which and others pods move has as many as it is to have. Its controller sees pods and replicas through
// different watches: where it sees that pods have left, and not that there were to be fewer, or that there are to be more, and not that pods have come,
// it would create some.
func Full(rs *apps.ReplicaSet, live int) bool {
	return revisions.Updating(rs) && live >= int(apps.Replicas(rs))
}
