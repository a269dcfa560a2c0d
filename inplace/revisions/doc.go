// Package revisions is about the marks on a workload's revisions, whatever its kind: since when an update is under way, whether the leader tends
// it, whether it was given back, and what of that is on record.
//
// Webhooks read here what the leader has written; both must agree, and none of it may depend on pods.
package revisions
