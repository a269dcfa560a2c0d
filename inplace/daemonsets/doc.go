// Package daemonsets makes the plan of a DaemonSet's update, and says which deletions of its pods are held.
//
// Here is what is special about DaemonSets. A pod's revision is a label on the pod. The native controller goes on counting pods and writing
// the status. So there is nothing to scale, and no ReplicaSets to mark. How a single pod is updated is in inplace/podstate, for both kinds.
//
// This package must not know Deployments: what both kinds need goes to a package below them.
package daemonsets
