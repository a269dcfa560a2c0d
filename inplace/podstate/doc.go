// Package podstate is about one pod of a workload in an update: what the pod still needs, which writes make it one of the update revision,
// in which order, and when it is taken out of service and put back.
//
// It may know what every kind of workload has: an update revision, a mode, and which pods have their turn. It must not know which kind the
// workload is. A pod's PodRevision holds what differs between kinds.
//
// # A pod's way
//
// What is left to do follows from what was observed alone. So an undo, a further edit and an undo in the middle of an update are all the
// same: some pods do not have the update revision yet.
//
//   - The pod gets its turn when its node has the new images (inplace/prepull) and as many pods are available as have to be. Pods that do
//     not serve anyway go first, and cost nothing.
//   - It is taken out of service (service.go), and drains (drain.go). If its containers only restart, its kubelet writes its volumes anew
//     before that (volumes.go).
//   - It is patched. Some pods need several writes (writes.go). Between two of them the pod is partially patched (partial.go). CPU and
//     memory come first (resize.go).
//   - It is back in service when its kubelet reports that the old containers have stopped, and the new ones are ready
//     (readiness.StoredReady).
//
// A change of labels, annotations or tolerations alone is the same patch, without a turn, a drain or a restart.
//
// While the user pauses the rollout no pod begins. Pods that were patched go on, and pods that were only drained serve again. The same
// happens when the user raises the partition (partition.go).
//
// # Pods that are not drained
//
// A pod that is not taken out of service (Work.Drains) would count as updated while its old containers serve. So its containers are
// patched first, which leaves it partially patched, and it moves when they have restarted. This concerns the last endpoint of a Service,
// pods in which only auxiliary containers restart, and pods that no webhook keeps out of service (engine.TakenOut).
//
// The annotation with the auxiliary containers is read for each plan. A pod that is out of service stays so until the containers have
// restarted, and a partially patched pod goes on, or back, as it is. A pod that goes back counts as one of the update revision all the
// time. So the marks on the ReplicaSets stay until its containers have restarted (deployments.Sets.Unproved).
package podstate
