// Package observe reads what package inplace decides on, at one moment: a Deployment with its ReplicaSets and pods, or
// a DaemonSet with its ControllerRevisions, pods and nodes. It also reads the mode that applies to the workload, and
// whether a leader renews its Lease, without which no webhook may hold writes.
//
// It reads through any client.Reader: a cache, or the API server itself. It never writes.
package observe
