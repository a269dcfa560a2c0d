// Package concurrency decides how many pods of all workloads restart at the same time, and how many writes are in flight.
//
// maxUnavailable bounds how many pods of one workload are out of service. Nothing native bounds how many of all workloads are: a hundred
// Deployments that are edited at once take a hundred pods out of service, or more. Administrators set Limits for the cluster, for each
// node, and for each group of nodes with the same value of a label.
//
// # What is counted
//
// A pod counts as long as Stayput has it out of service: from when its Ready is set to False, or its containers are patched, until it is
// Ready. A pod that does not come back counts for Patience at most. Otherwise one image that crashes could stop the updates of all
// namespaces. A pod that is not Ready for other reasons does not count, and needs no permission to restart: nothing is lost with it, and an
// undo must always be possible. Surge pods do not count either: they come on top of what a workload wants.
//
// # Writes
//
// Writes bounds the writes in flight by how long they take, so that other clients of the API server need not wait behind them. It does not
// know what they are for: controller/write gives them their turns.
//
// # What it must not know
//
// The package counts pods, whatever their workload is. Which pods are to be taken out of service is decided in inplace/engine. Which
// workload comes first, and that no two workers of the leader count on the same place, is up to controller/allowance.
package concurrency
