// Package statefulsets says what is special about StatefulSets, whose updates package controllerrevisions plans, and which deletions of
// their pods and revisions are held.
//
//   - The highest ordinal goes first, and a lower one begins only after the higher ones (order.go). What the StatefulSet controller would
//     do next is what Stayput has in hand, so that controller can go on at any moment.
//   - The partition is the spec's own, and counts from the first ordinal. The controller leaves these pods alone, so they take no part in
//     an update.
//   - With strategy OnDelete and its own label stayput.dev/update, one pod is updated at a time. Nothing is held, as the controller deletes
//     no pod for an update. A pod that cannot be updated in place keeps its revision.
//   - A refused DELETE is no success to the controller: it tries again, later and later (webhook/revised.go). It watches pods, and no
//     ControllerRevisions, so a nudge is an annotation of a pod.
//   - A pod's label has the name of its revision. Each ordinal has its own name and claims (dryrun.go).
//
// # OrderedReady
//
// With the pod management policy OrderedReady, the default, the controller does nothing as long as a pod is not Ready, whatever the
// template says (updateStatefulSet in pkg/controller/statefulset/stateful_set_control.go). So nothing may keep a pod from being Ready for
// ever. A pod that is out of service drains before its patch all the same, because its kubelet puts it back if all managers end (package
// readiness), and the controller then replaces it.
//
// The controller never gives a pod that is not Ready the template that would cure it (kubernetes#67250). In place it gets that template, if
// waiting for it is in vain: see order.go.
//
// This package must not know other kinds: what several kinds need goes to a package below them.
package statefulsets
