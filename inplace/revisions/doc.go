// Package revisions is about the marks on a workload's revisions, for every kind of workload: when an update started, whether the leader
// renews the hold, whether the update fell back, and what persisted fallback there is.
//
// Webhooks read here what the leader has written. Both must agree, and nothing here may depend on pods.
//
// The holds of a workload that is being deleted are the only ones without renewal: see deployments.Rollout.Deleting and
// controllerrevisions.Rollout.HoldsDeletion. How long the others last is in renew.go, and when a fallback is forgotten in
// docs/architecture.md.
package revisions
