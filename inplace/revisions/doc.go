// Package revisions is about the marks on a workload's revisions, for every kind of workload: when an update started, whether the leader
// renews the hold, whether the update fell back, and what persisted fallback there is.
//
// Webhooks read here what the leader has written. Both must agree, and nothing here may depend on pods.
package revisions
