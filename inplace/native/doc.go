// Package native makes what the native controllers would have made, where they are kept from it: the ReplicaSet of a new template.
//
// It follows their code and decides nothing: whether and when that is wanted is for the planner.
package native
