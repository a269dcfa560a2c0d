// Package nodes reads the state of a node's kubelet: whether the node is reachable, and the kubelet's version.
//
// What this means for pods on the node depends on the kind of workload and on the moment, and is up to the callers.
package nodes
