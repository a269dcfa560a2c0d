// Package inplace holds, with the packages under it, every decision that Stayput takes: what an edit of a pod template changes, whether
// running pods can take it, which pods are next, which writes come next, and what the status is meanwhile.
//
// All of it is pure: it has no client, no clock and no logger. Callers pass what they have read, and carry out what they get. This package
// has what all others use: names, modes, settings, reasons, and the form of times. So it imports none of them; docs/architecture.md says
// which package may import which.
//
// # Words
//
// Kubernetes' words are used as Kubernetes uses them: update revision, old revisions, current revision (of a StatefulSet's status), surge,
// partition, drain, dry run, infeasible and deferred (of a resize), available. Stayput adds these:
//
//   - hold: a webhook refuses a write of a native controller while Stayput updates the workload (steps.Decision.Held). A hold expires, as a
//     Lease does, unless the leader renews it on the marked revisions (revisions.HoldLasts).
//   - mark: a label of Stayput on a revision, or an annotation of Stayput on a pod (Marks).
//   - move: the patch by which a running pod becomes one of the update revision: images, labels and owner at once (readiness.Move).
//   - turn: a pod has its turn when it is out of service because Stayput patches it next, or removes it (podstate.State).
//   - out of service: of a pod, that Stayput has set its Ready to False (readiness.Out).
//   - partially patched: of a pod, that one write of its move has been made and the last one has not (podstate/partial.go).
//   - applied: of a patch, that the kubelet has carried it out (readiness.Move.Applied).
//   - fall back: to leave an update to the native controller for good, with a mark that says so (deployments.Rollout.FallBack).
//   - persisted fallback: the same, in a ConfigMap of Stayput, for workloads whose objects refuse Stayput's writes (revisions.Fallbacks).
//   - nudge: a write whose only purpose is that a native controller looks at the workload again (deployments.Rollout.Nudge).
//   - bypass: a native write that a webhook should have held and did not (deployments/bypass.go).
//   - surge pod: a pod that exists only while others are updated, where none may be unavailable (deployments/surge.go).
//   - pre-pull pod: a pod that only has its node pull images before containers there stop (prepull).
//   - auxiliary: of a container, that the user does not wait for it: where only such containers restart, the pod stays in
//     service (AnnotationAuxiliary).
//   - housekeeping: deletions of the DaemonSet controller that have nothing to do with an update (controllerrevisions/hold.go).
package inplace
