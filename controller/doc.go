// Package controller carries out in-place updates. Its leader reads a Deployment or DaemonSet with its revisions and pods, asks package
// inplace for the next steps, writes them one guarded patch at a time and tells people what happened only once it has.
// Every replica, leader or not, opens the readiness gates of newborn pods.
//
// Nothing kept in memory decides anything that a restart would decide otherwise: what was written is remembered only until
// the cache shows it, what was announced only so that it is not announced twice, and since when a pod is out of service only so
// that the wait of a drain, which a restart begins anew, comes to its end.
//
// Its rooms: kinds, what differs between kinds of workloads; drain, report, write and release, which leaves nothing behind; gate, on every
// replica. Each imports those it needs and never this one, where a reconcile puts them together.
package controller
