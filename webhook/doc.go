// Package webhook answers admission requests. It tells users what an edit of a pod template will do. It holds the writes by which native
// controllers would replace pods. And it leaves pods out of service that kubelets would put back before their containers have restarted.
// It decodes the request, asks package inplace and answers; it writes nothing.
//
// A request that does not concern Stayput is allowed first. A request that cannot be decided is allowed with a warning, except by
// /validate-in-place-only: a read failed, or an object does not decode or lacks its metadata. A handler that panics drops the connection,
// so that the webhook's failurePolicy decides.
//
// Any client in the cluster can reach the port. So a request is decided only if its namespace is labelled: the cache knows that, and the
// API server is asked a few times a second. A handler lists only what a stored object selects. Package port limits how many requests are
// in progress, and how long each may take.
//
// # What an answer rests on
//
// The table of what is held, and of what the native controllers then do, is in docs/architecture.md. A native controller repeats a write
// that was refused with a Conflict, so the cache may deny it. An allowed write cannot be taken back, so only live reads allow one
// (hold.go).
// A deletion that was refused with NotFound does not come again, so the denial rests on live reads, and so does that of a status that says
// that all is done. The exception is the deletion of a DaemonSet's pod that is out of service: its return makes the controller look again
// (daemonset.go). Where a live read fails or takes too long, the cache may deny with a Conflict (hold.go).
//
// # How a request flows
//
// A route (routes.go) leads to a handler: of template edits (workload.go), of native controllers' writes (replicaset.go, status.go,
// deletion.go), or of new pods and their status (pod.go, podstatus.go). What a handler needs to know of a kind stands in the kind's file.
// Whether a write is held is decided below all of them (deploymenthold.go, revised.go, hold.go). A handler reads the cache and decides, and
// only before it allows a native write it reads the API server and decides again (Sources.either). No function calls one of a file
// above its own.
//
// # What the webhook configurations must contain
//
// Every webhook has a namespaceSelector on inplace.LabelUpdate without kube-system and Stayput's own namespace, sideEffects None,
// matchPolicy Equivalent, and failurePolicy Ignore except where noted. A dry run gets the same answer and changes nothing. The handlers
// check users and operations themselves; matchConditions save calls.
//
// timeoutSeconds is 5 at most: while no manager answers, each write of a native controller blocks one of the few workers of
// kube-controller-manager for that long, and those workers serve the whole cluster. It is 2 for the note on an edited template: a user
// waits, and a patch that meets newer versions asks both webhooks of edits again, five times at most. It is 1 for the reports of kubelets,
// because a kubelet writes one after the other, and 1 for webhooks that always allow.
//
//	/mutate-workload      CREATE, UPDATE of apps/v1 deployments, daemonsets and statefulsets; reinvocationPolicy IfNeeded, as other
//	                      webhooks may change the template later. Conditions: on CREATE the annotation inplace.AnnotationDecision is
//	                      there, on UPDATE object.spec.template != oldObject.spec.template
//	/validate-workload    UPDATE of the same. Condition: object.spec.template != oldObject.spec.template
//	/validate-in-place-only
//	                      replaces /validate-workload in namespaces with the value in-place-only, for workloads that have that value
//	                      themselves, or no label and a kind among inplace.LabelKinds; failurePolicy Fail.
//	/mutate-replicaset    CREATE of apps/v1 replicasets. Condition:
//	                      request.userInfo.username == "system:serviceaccount:kube-system:deployment-controller"
//	/validate-replicaset  UPDATE of apps/v1 replicasets and replicasets/scale, DELETE of replicasets. Conditions: the same user, and
//	                      object.spec.?replicas != oldObject.spec.?replicas (a Scale of 0 has no such field), or that the deleted
//	                      ReplicaSet has the label inplace.LabelUpdating.
//	/throttle-replicaset  UPDATE of apps/v1 replicasets that have the label inplace.LabelUpdating, under the same conditions. Always
//	                      allows, late.
//	/validate-status      UPDATE of apps/v1 deployments/status. Conditions: the same user, and a status of the latest generation that
//	                      says that the rollout is done.
//	/validate-new-pod     CREATE of v1 pods. Denies a pod of a ReplicaSet that takes part in an update and has all its pods already.
//	                      Condition: request.userInfo.username == "system:serviceaccount:kube-system:replicaset-controller"
//	/mutate-pod-status    UPDATE of v1 pods/status. Conditions: the user is the kubelet of the pod's node (readiness.ByKubelet), and the old
//	                      pod is out of service (readiness.Out).
//	/validate-pod         DELETE of v1 pods. Condition: request.userInfo.username in
//	                      ["system:serviceaccount:kube-system:replicaset-controller",
//	                      "system:serviceaccount:kube-system:daemon-set-controller",
//	                      "system:serviceaccount:kube-system:statefulset-controller"]
//	                      A second webhook asks about deletions by the first of them of pods that run a container that is to
//	                      stop since they have moved; failurePolicy Fail.
//	/validate-revision    DELETE of apps/v1 controllerrevisions. Condition: the user is one of the last two.
//	/throttle-pod         DELETE of v1 pods. Conditions: the same users as of /validate-pod, and for the ReplicaSet controller only pods that
//	                      are out of service. Always allows, late.
package webhook
