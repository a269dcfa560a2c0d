// Package member is about one pod of a workload in an update: what it still needs, which writes make it one of the target, in which order, and when
// its gate closes and opens.
//
// It may know of the pod's workload what every kind has - a target, a mode, whose turn it is - and must not know which kind that is: what differs,
// a pod's Origin tells.
package podstate
