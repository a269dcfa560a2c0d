// Package revisions is about the marks on a workload's revisions, for every kind of workload: when an update started, whether the leader
// renews the hold, whether the update fell back, and what persisted fallback there is.
//
// Webhooks read here what the leader has written. Both must agree, and nothing here may depend on pods.
//
// # Hold
//
// A hold lasts while the leader has renewed its Lease in the last minute (inplace.LeaderPatience), and has renewed this very update in the
// last 150 s, by a time in a label on each marked revision (renew.go). Writes of an update that is not marked yet are held for a minute at
// most. So neither webhooks without a leader, nor a leader that never comes to a workload or may not write to it, can block anything for
// long.
//
// The holds of a workload that is being deleted are the only ones without renewal: see deployments.Rollout.Deleting and
// controllerrevisions.Rollout.HoldsDeletion.
//
// # Fallback
//
// A fallback is persisted with the hash of the template in a ConfigMap of Stayput's own namespace (fallback.go). Webhooks and the next plan
// read it there: an API server that refuses Stayput's patches of the workload might refuse a label, too. It is forgotten when nothing is
// left to do, the template is another one, or the workload is gone.
//
// By the time an update falls back, the native controller may have stopped trying, and would look again only after hours. So as long as
// something is left to do it is nudged, by a label on a revision. If writes are refused or fail (Fallback.NudgesFail), it is also nudged by
// a time in a Deployment's status, or an annotation on a pod.
package revisions
