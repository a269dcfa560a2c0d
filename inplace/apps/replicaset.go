package apps

import (
	"k8s.io/utils/ptr"
)

// InUse reports whether the ReplicaSet wants pods, or its status counts any.
func InUse(rs *ReplicaSet) bool { return Replicas(rs) > 0 || rs.Status.Replicas > 0 }

// Observed reports whether the ReplicaSet controller has observed the latest spec.
func Observed(rs *ReplicaSet) bool { return rs.Status.ObservedGeneration >= rs.Generation }

// Replicas returns spec.replicas of the ReplicaSet, defaulted as the API server does.
func Replicas(rs *ReplicaSet) int32 { return ptr.Deref(rs.Spec.Replicas, 1) }
