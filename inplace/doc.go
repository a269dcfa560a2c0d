// Package inplace holds, with the packages under it, every decision Stayput takes: what an edit of a pod template changes, whether running
// pods can take it, whose turn it is, which single step comes next and what the status is meanwhile.
//
// They are pure: no client, no clock, no logger. Callers hand them what they have read and carry out what they answer. This one has what
// all others speak of: names, modes, settings and reasons. So it may import none of them; docs/architecture.md says which may import which.
//
// # Words
//
// Of updates:
//
//   - target: the revision that all pods are to become one of, a ReplicaSet or a ControllerRevision (steps.Verdict.Target).
//   - source: another ReplicaSet of the Deployment that has or wants pods.
//   - held: of an update, that it is made in place and the native controllers' writes are refused meanwhile (steps.Verdict.Held).
//   - mark: a label of ours on a revision (Marks).
//   - settling: of a ReplicaSet, that it has the mark by which its controller's deletions are held, since pods move from it or to it (revisions.Settling).
//   - under way: of a ControllerRevision, that it has the same mark, which there only says that the update to it has begun (daemonsets.UnderWay).
//   - tend: to sign every marked revision once a minute with the time, without which a hold lapses (revisions.HoldLasts).
//   - wake: to write what makes a native controller look again (deployments.Rollout.Wake, LabelWoken).
//   - release: to give an update back to the native controller, with its target labelled so that it stays given back (deployments.Rollout.Release).
//   - record: a release that is also noted in a ConfigMap of ours, where our writes to the workload may not be taken (steps.RecordRelease, revisions.Records).
//   - post: to enter by how much replicas are to change, and why; nothing is written before the books add up (ledger.Ledger).
//   - slip: a native write that should have been held and was not, told by replicas that we did not write (deployments/slip.go).
//   - beat: the moment in which what is due waits for others to go along (steps.Beats).
//   - rehearsal: the creation of a pod of the target that is not stored, which tells what admission makes of one (steps.Rehearse, dryrun.Rehearsal).
//
// Of pods:
//
//   - gate: the readiness gate that pods are born with; closed, it keeps the pod out of service (ConditionServing).
//   - turn: a pod has its turn when its gate is closed because it is to be patched next, or to go (podstate.Turns).
//   - drained: of a pod that has its turn, that its containers may stop (serving.Endpoint.Drained).
//   - move: the patch by which a live pod becomes one of the target, images, labels and owner at once; and what is noted of it on the pod (readiness.Move).
//   - arrived: that the containers have followed the last patch (readiness.Move.Arrived).
//   - light: of a pod, that it moves without a restart (podstate.State.Light).
//   - half-way: of a pod, that a write of its move has been made and the last has not, so that its spec is not what its identity says (member/halfway.go).
//   - auxiliary: of a container, that nobody waits for it: where no others restart, its pod's gate stays open (AnnotationAuxiliary, podstate.State.Drains).
//   - lost: of a pod that does not serve, that nobody hears of its node's kubelet, so that only another can take its place (deployments/lost.go).
//   - stray: a pod in the middle of an update whose workload has gone without it (podstate.MayStray).
//   - housekeeping: what the DaemonSet controller deletes a pod for whatever its revision is (daemonsets.DaemonRollout.HoldsDeletion).
//
// Of pods that come and go:
//
//   - borrow: to have the target make more pods than the Deployment wants, as none may be missed; how many is noted on it (LabelBorrowed).
//   - lend: to note on a pod that it is one of those (AnnotationBorrowed).
//   - give back: to make a borrowed pod the first that its controller deletes, and to lower replicas by it; from then on it goes (replicas.MayGo).
//   - in vain: that nothing can be borrowed, so that pods restart one at a time (deployments/borrow.go).
//   - puller: a pod that does nothing but have its node pull images, before containers there stop (prepull/pull.go).
package inplace
