// Package podstate is about one pod of a workload in an update: what the pod still needs, which writes make it one of the update revision,
// in which order, and when its gate closes and opens.
//
// It may know what every kind of workload has: an update revision, a mode, and which pods have their turn. It must not know which kind the
// workload is. A pod's Origin holds what differs between kinds.
package podstate
