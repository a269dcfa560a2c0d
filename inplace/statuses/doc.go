// Package statuses computes the status of a Deployment as the native controller would write it, by the native formula.
//
// Both writers must always write the same status. So the package knows ReplicaSets and their counts, and nothing of pods, of
// Stayput's marks and of turns.
//
// The Deployment controller writes the status after it has scaled, and while its scaling is held it does not get there. So the leader
// writes it. The observed generation and conditions that change are written at once, because users and tools act on them. While pods
// change their ReplicaSet, the sums are from two moments, so conditions wait for a batch window. Counts that have only gone on are written
// half a second after the first did (status.canWait in inplace/deployments). Stayput never reports completion: when no pod is left
// on old ReplicaSets, the native controller finishes, reports and cleans up.
//
// progressDeadlineSeconds is kept as natively, with one difference. Natively a new pod starts while an old one stops. In place one comes
// after the other. So the deadline runs from when pods were last drained or stopped within the time that they have for it: the drain and
// the wait for EndpointSlices, or the grace period and 10 s (Formula.OnTimeUntil). The kubelet reports when the earlier container ended.
package statuses
