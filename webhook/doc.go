// Package webhook answers admission requests: it tells people what a template edit will do, holds the writes by which the
// native controllers would replace pods, gives new pods the readiness gate, and has their Ready follow it. It decodes, asks package inplace and answers;
// it writes nothing.
//
// What is not ours is allowed first. A request that cannot be judged (a read fails, an object does not decode or lacks its metadata) is allowed,
// with a warning, except by /validate-in-place-only. A handler that panics drops the connection, so that the webhook's failurePolicy decides.
//
// Anybody in the cluster can reach the port. So a request is judged only if its namespace is labelled, by the cache or, a few times a
// second, by the API server; and what is listed for it is what a stored object selects. Package port limits how many are under way, and for how long.
//
// # What the configurations must say
//
// Every webhook: namespaceSelector on inplace.LabelUpdate without kube-system and Stayput's own namespace, sideEffects None (a
// dry run is answered in the same way and changes nothing), matchPolicy Equivalent, failurePolicy Ignore except where noted. The handlers
// check users and operations themselves; matchConditions spare the calls. timeoutSeconds is 5 for edits of templates, for which a person
// waits, and 3 for the writes of native controllers: while nobody answers, each costs one of the few workers of
// kube-controller-manager that long, whosever pods it is about. It is 1 for the reports of kubelets, each of which writes one after the other,
// and for what is always allowed.
//
//	/mutate-workload      CREATE, UPDATE of apps/v1 deployments and daemonsets; reinvocationPolicy IfNeeded, as others may change the
//	                      template after us. Conditions: at birth the annotation inplace.AnnotationDecision is there, later
//	                      object.spec.template != oldObject.spec.template
//	/validate-workload    UPDATE of the same. Condition: object.spec.template != oldObject.spec.template
//	/validate-in-place-only
//	                      instead of it in namespaces that say so; failurePolicy Fail.
//	/mutate-replicaset    CREATE of apps/v1 replicasets. Condition:
//	                      request.userInfo.username == "system:serviceaccount:kube-system:deployment-controller"
//	/validate-replicaset  UPDATE of apps/v1 replicasets and replicasets/scale, DELETE of replicasets. Conditions: the same user, and
//	                      object.spec.?replicas != oldObject.spec.?replicas (a Scale of 0 has no such field), or that what is deleted
//	                      has the label inplace.LabelSettling.
//	/throttle-replicaset  UPDATE of apps/v1 replicasets that have the label inplace.LabelSettling, under the same conditions. Always allowed, late.
//	/validate-status      UPDATE of apps/v1 deployments/status. Conditions: the same user, and a status of the latest generation that
//	                      says that all is done.
//	/mutate-pod           CREATE of v1 pods, of which those are denied that a ReplicaSet has already. Condition: request.userInfo.username in
//	                      ["system:serviceaccount:kube-system:replicaset-controller", "system:serviceaccount:kube-system:daemon-set-controller"]
//	/mutate-pod-status    UPDATE of v1 pods/status, where there is no manifests/ready. Conditions: inplace.StoredConditions are not what is sent.
//	/validate-pod         DELETE of v1 pods. Condition: the same users.
//	/validate-revision    DELETE of apps/v1 controllerrevisions. Condition: request.userInfo.username ==
//	                      "system:serviceaccount:kube-system:daemon-set-controller"
//	/throttle-pod         DELETE of v1 pods. Conditions: the same users, and of the ReplicaSet controller's those whose gate is closed. Always
//	                      allowed, late.
package webhook
