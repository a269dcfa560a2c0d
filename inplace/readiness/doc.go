// Package readiness reads the state of one pod: whether it is in service, the mark of its last move, and the evidence that its old
// containers have stopped. It also has the rule by which a pod stays out of service, and whether the kubelet of a node answers.
//
// The package decides everything from the pod and the time, because webhooks ask the same of a single pod. It must not know the workload,
// nor what the pod is to become.
//
// # Out of service
//
// Before containers of a pod restart, the leader takes the pod out of service: it writes Ready=False, with reason ReasonUpdating, into the
// pod's status (service.go). All who read Ready take that as it is: EndpointSlices, the native controllers, PodDisruptionBudgets.
//
// The pod's kubelet takes such a Ready back. It compares what is stored with what it last said every 10 s, and writes its own (syncBatch
// and isPodStatusByKubeletEqual in pkg/kubelet/status/status_manager.go); kube-controller-manager relies on that when it marks pods of a
// lost node (MarkPodsNotReady in pkg/controller/util/node). So nothing has to put a pod back into service: whatever becomes of Stayput, its
// kubelet does.
//
// As long as a manager answers, a webhook leaves the pod out of service in the reports of its kubelet (StoredReady): until it is patched,
// and then until its old containers have stopped. That is needed, because a kubelet reports Ready=True with the generation of the patch
// before it kills. The condition is the only mark, so when the kubelet's own Ready passes nothing is left behind. A pod that was not
// patched in time (TakenOutUntil) comes back even if a manager answers: the leader may have forgotten it.
//
// # Evidence
//
// A patched pod goes back when the kubelet has seen the patch (status.observedGeneration), and each patched container has become unready
// since, or does not run, or is another one: another ID and another image (evidence.go). Each of the two alone may be an old fact. The
// kubelet writes observedGeneration before it kills. And a container may have been unready before the patch, restarted for an earlier one,
// or failed and come back unchanged. Containers that are not patched say nothing. From then on the containers' own readiness decides. A pod
// counts as updated only when its containers run their new images, under other container IDs (Move.Applied).
//
// A container that only restarts gets another name of its image (inplace/edit/names.go), and runtimes report the same image for every name.
// So the evidence is another container than in the kubelet's previous report, if the kubelet had seen the patch by then. A container that
// is merely another one than at the patch may have failed before its kubelet knew of the patch.
package readiness
