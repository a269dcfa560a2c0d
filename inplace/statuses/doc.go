// Package statuses computes the status of a Deployment as the native controller would write it, by the native formula.
//
// Both writers must always write the same status. So the package knows ReplicaSets and their counts, and nothing of pods, of
// Stayput's marks and of turns.
package statuses
