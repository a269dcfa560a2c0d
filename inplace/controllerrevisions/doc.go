// Package controllerrevisions plans the updates of workloads whose pods name their ControllerRevision in a label: DaemonSets and
// StatefulSets. A kind adds what is its own: see Kind.
//
// What was observed does not change while a plan is made (observed). Each stage gets what the stage before has decided (planner): which
// marks the revisions get (marking), which pods move (move), and whether the native controller is nudged (nudge.go).
//
// The native controller creates the ControllerRevision of an edit before it deletes any pod. It goes on counting pods by their label and
// writes the status itself. So there is nothing to scale: it is enough to hold its DELETEs and to move the pods. It repeats a DELETE that
// was refused late or never, so whatever ends a hold has to nudge it.
//
//   - A pod that must be replaced waits until the pods that can be updated in place are done. If it does not serve, it does not wait, as
//     far as the partition allows: nothing is lost with it, and it takes up the budget of the others.
//   - If some revisions of the pods can be changed in place and others cannot, the former come first, and then the rest is native. Two
//     controllers that take pods down do not know of each other.
//   - Pods whose ControllerRevision is gone are native.
//
// The patch that moves a pod sets images, labels and controller-revision-hash at once, and removes pod-template-generation: the DaemonSet
// controller takes a match of either label for an updated pod. If the hash came later, an undo in between would make the controller take a
// pod with the wrong image for an updated one, for ever. A pod that is not drained has a hash that no revision has while its containers
// restart (podstate/partial.go).
package controllerrevisions
