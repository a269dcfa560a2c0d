// Package prepull makes nodes pull images before containers there stop. It decides which pods may restart, and which pre-pull pods
// are created and deleted for the others.
//
// Kubelets kill before they pull, so an image that is slow or missing would take a pod out of service. The package may know nodes,
// pre-pull pods and quotas, and what inplace/podstate says of the pods. It must not decide the order of turns and the budget.
//
// A pod gets no turn until its kubelet is known to have the images, and to let the pod use them, so that it need not ask the registry. From
// 1.35 on a kubelet asks the registry about an image that it has, if no pod with the same credentials has used it by the same name. So it
// is not enough that the node lists an image: a pod of the workload runs it there, or the container itself did before an undo. Pods of a
// workload have the same credentials. Otherwise, or if the pull policy is Always, a pre-pull pod finds out. It is bound to the node, mounts
// the images as volumes, and runs Stayput's own image (`stayput wait`). The kubelet verifies it as it would the pod. Its status is the
// answer:
//
//   - Running: the volumes are mounted, so the images are there, and the kubelet does not collect them.
//   - Waiting, with ErrImagePull or the like: nothing restarts on that node. The kubelet pulls volumes before the container's own image, so
//     a later error, even of Stayput's own image, does not matter.
//   - Failed without having run: the node did not accept the pod. The update goes on there without pulling first. The same goes for a pod
//     without a sandbox for a minute, with kubelets 1.36 and newer.
//
// Nothing else that the API shows is enough. A pod without pull secrets is no exception: for it, too, the kubelet asks the registry about
// an image that was pulled with a secret. Whether an image was there before the kubelet (NeverVerifyPreloadedImages), is allowed to all, or
// was pulled without credentials (NodePodsAccessible), only the kubelet's own configuration and records say (MustAttemptImagePull in
// pkg/kubelet/images/pullmanager). It records image by image, so an older tag of the repository shows nothing. After a wrong guess, a
// container that has stopped waits for the registry.
//
// A pre-pull pod is bound by spec.nodeName. A scheduler could only find it unschedulable, while the kubelet gives an answer.
//
// At most stayput.dev/pre-pull-parallelism nodes have a pre-pull pod and a pod that still waits for its turn. Nodes whose pods have their
// turn do not count, so pulling stays ahead of the restarts by that many nodes. For a pod that does not serve, only nodes that still pull
// count: the others may wait for that pod, which takes up the budget.
//
// Some pods do not wait: those whose containers cannot pull what they have now, so that an undo gets through; pods on no node; and pods
// that do not serve, on nodes that are not Ready. If the API server refuses a pre-pull pod (any 4xx that is not about timing) while there
// are no others, that is remembered for the update revision, and the update goes on without pulling first.
//
// A plan that creates pre-pull pods is made twice, the second time with the namespace's ResourceQuotas. They must leave room for
// 1 + maxSurge pods of a Deployment, or for one pod of another workload.
package prepull
