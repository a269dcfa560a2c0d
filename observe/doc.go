// Package observe reads what package inplace decides on: a Deployment with its ReplicaSets and pods, or a DaemonSet with its
// ControllerRevisions, pods and nodes, at one moment, the mode that applies to it, and whether a living leader stands behind the held
// writes.
//
// It reads through any client.Reader, a cache as well as the API server itself, and never writes.
package observe
