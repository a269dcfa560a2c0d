// Package daemonsets makes the plan of a DaemonSet's update, and says which deletions of its pods are held.
//
// What is special about the kind is here: a revision is a label on the pod, the native controller goes on to count and to write the status, and
// so there is nothing to scale and nothing to settle. How a single pod is updated is told in inplace/member, for both kinds.
//
// It must not know the other kind: what both need goes to a room below them.
package daemonsets
