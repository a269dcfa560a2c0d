// Package statuses is the status of a Deployment as the native controller would write it, by its own formula.
//
// Both writers must always write the same: so it knows ReplicaSets and their counts, and nothing of our pods, marks and turns.
package statuses
