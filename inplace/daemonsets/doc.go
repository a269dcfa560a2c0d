// Package daemonsets says what is special about DaemonSets, whose updates package controllerrevisions plans, and which deletions of their
// pods and revisions are held.
//
//   - Each node has one pod. Housekeeping of the nodes is never held (nodes.go).
//   - The budget is that of rollingUpdate in pkg/controller/daemon/update.go. Percentages round up, to at least one. Nodes without an
//     available pod count as unavailable, also nodes that are unreachable: there the controller keeps a pod, but does not want one. Pods on
//     such nodes are left alone until their kubelets report, since no kubelet would act on a patch. With the annotation
//     stayput.dev/unreachable-nodes, such a node does not count unless its pod has begun the update. When it is back, it counts until its
//     pod serves: no other pod begins then, but more may be down for that moment than maxUnavailable.
//   - maxSurge is native, and so is OnDelete without a label stayput.dev/update of its own. With it, maxUnavailable is 1.
//   - The native controller adds tolerations and the node to each pod (places.go, dryrun.go).
//
// This package must not know other kinds: what several kinds need goes to a package below them.
package daemonsets
