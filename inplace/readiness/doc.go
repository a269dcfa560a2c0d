// Package readiness reads the state of one pod: its gate and its Ready, the mark of its last move, and the evidence that its old
// containers have stopped. It also has the rule by which the API server itself says Ready, and whether the kubelet of a node answers.
//
// The package decides everything from the pod and the time, because webhooks and policies ask the same of a single pod. It must not
// know the workload, nor what the pod is to become.
//
// # Evidence
//
// The gate of a patched pod opens when the kubelet has seen the patch (status.observedGeneration), and each patched container has become
// unready since, or does not run, or is another one: another ID and another image (evidence.go). Each of the two alone may be an old fact.
// The kubelet writes observedGeneration before it kills. And a container may have been unready before the patch, restarted for an earlier
// one, or failed and come back unchanged. Containers that are not patched say nothing. From then on the containers' own readiness decides.
// A pod counts as updated only when its containers run their new images, under other container IDs (Move.Applied).
//
// A container that only restarts gets another name of its image (inplace/edit/names.go), and runtimes report the same image for every name.
// So the evidence is another container than in the kubelet's previous report, if the kubelet had seen the patch by then. A container that
// is merely another one than at the patch may have failed before its kubelet knew of the patch.
//
// # Ready
//
// A kubelet says Ready a second or two after a gate has moved. So the API server says so, in every write of a pod's status by its kubelet
// or by Stayput (ready.go). It decides on the object that it stores, so it never crosses another write. Where the rule is not in force, or
// fails, Ready is what kubelets say.
//
//   - From Kubernetes 1.36 on, a MutatingAdmissionPolicy has the rule in CEL (manifests/ready). It asks no manager, and works without any.
//   - On 1.34 and 1.35, a webhook asks a manager (manifests/ready-webhook), only about writes that the rule changes: four for each updated
//     pod. Without managers such a write is stored as it was sent: at once if the Service has no endpoints, after a second if no manager
//     answers. Managers open the gates when they are back.
//
// What the first reports of a restarted container are worth depends on its probes, with kubelets 1.35 and 1.36:
//
//   - No probe: ready means that the container runs. The pod is Ready at once.
//   - A readiness probe: a new container has no result yet, and that is not ready. The pod is Ready at once, but see ahead.go.
//   - A startup probe: the container is reported as started from its first report on, because that is copied from the old container until
//     the probe's next turn, at most one period later. If the container is to be patched, the update is native (inplace/edit/forbidden.go).
//     Otherwise Ready is left to the kubelet.
//   - A startup probe of a sidecar: the same, with or without a readiness probe. The kubelet may never compare the sidecar's image.
//   - Startup and readiness probe: the readiness probe has answered, but too early, and the kubelet takes Ready back. Ready is left to the
//     kubelet until one period and 5 s after the start (startupUnproved).
package readiness
