package deployments

import (
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/revisions"
)

// Surplus returns how many pods the ReplicaSet controller would delete if Stayput did not hold that.
func (s *Set) Surplus() int { return max(0, len(s.Pods)-s.Size()) }

// Missing returns how many pods the ReplicaSet controller has yet to create, or cannot create.
func (s *Set) Missing() int { return max(0, s.Size()-len(s.Pods)) }

// Lowered returns for how many pods that leave replicas were lowered, without those lowered for surge pods that are being removed.
func (s *Set) Lowered() int { return s.Surplus() - min(s.Ending(), s.Surplus()) }

// SurplusPasses reports whether the ReplicaSet has surplus pods only until Stayput's next step. Either pods are about to leave, or its
// replicas are about to be raised for pods that have moved to it. The ReplicaSet controller need not ask for deletions until then.
func SurplusPasses(rs *apps.ReplicaSet, live int) bool {
	return revisions.Updating(rs) && live > int(apps.Replicas(rs))
}

// Full reports whether a ReplicaSet that takes part in an update has as many pods as it is to have. Its controller sees pods and replicas
// through different watches, so it may see one change and not yet the other. It would create pods if it saw that pods have left but not
// that replicas were lowered, or if it saw that replicas were raised but not that pods have moved in.
func Full(rs *apps.ReplicaSet, live int) bool {
	return revisions.Updating(rs) && live >= int(apps.Replicas(rs))
}
