// Package daemonsets makes the plan of a DaemonSet's update, and says which deletions of its pods are held.
//
// Here is what is special about DaemonSets. A pod's revision is a label on the pod. The native controller goes on counting pods and writing
// the status. So there is nothing to scale, and no ReplicaSets to mark. How a single pod is updated is in inplace/podstate, for both kinds.
//
// This package must not know Deployments: what both kinds need goes to a package below them.
//
// The DaemonSet controller creates the ControllerRevision of an edit before it deletes any pod. So it is enough to hold its DELETEs and to
// move the pods. It does not repeat a DELETE that was refused: whatever ends a hold has to nudge it (Rollout.HoldsDeletion).
//
//   - A pod that must be replaced waits until the pods that can be updated in place are done. If it does not serve, it does not wait, as
//     far as the partition allows: nothing is lost with it, and it takes up the budget of the others.
//   - If some revisions of the pods can be changed in place and others cannot, the former come first, and then the rest is native. Two
//     controllers that take pods down do not know of each other.
//   - Housekeeping is never held (nodes.go).
//   - The budget is that of rollingUpdate in pkg/controller/daemon/update.go. Percentages round up, to at least one. Nodes without an
//     available pod count as unavailable, also nodes that are unreachable: there the controller keeps a pod, but does not want one. Pods on
//     such nodes are left alone until their kubelets report, since no kubelet would act on a patch.
//   - OnDelete, maxSurge, and pods whose ControllerRevision is gone are native.
//
// The patch that moves a pod sets images, labels and controller-revision-hash at once, and removes pod-template-generation: the native
// controller takes a match of either label for an updated pod. If the hash came later, an undo in between would make the controller take a
// pod with the wrong image for an updated one, for ever. A pod that is not drained has a hash that no revision has while its containers
// restart (podstate/partial.go).
package daemonsets
