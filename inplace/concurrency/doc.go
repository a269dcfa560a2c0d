// Package concurrency decides how many pods of all workloads restart at the same time, and which are next.
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
// # Who is next
//
// The next pod is one of the namespace that has the fewest pods out of service; of several, of the one whose last pod came first. Within a
// namespace it is one of the update that began first. So no update waits for ever, and a namespace with many workloads does not delay
// others. A permission that is not used yet is kept for its pod.
//
// # Without limits
//
// More pods out of service than come back at once only wait there. So there is one more bound, which follows from how late the leader is:
// see Load. Each namespace has its part of it, at least one pod, also where others have used it up: a tenant that begins waits for none of
// the pods of others. A workload that is alone is not bound.
//
// # What it must not know
//
// The package counts pods, whatever their workload is. Which pods are to be taken out of service is decided in inplace/engine; that two
// workers of the leader do not count on the same permission is up to controller/allowance.
package concurrency
