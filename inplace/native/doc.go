// Package native creates what a native controller would have created, where Stayput holds that controller's writes: the ReplicaSet of a
// new template.
//
// It follows the native code and decides nothing: whether and when to create is decided by the planner.
package native
