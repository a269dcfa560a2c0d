// Package disruption decides whether PodDisruptionBudgets allow that one more pod is taken out of service.
//
// Kubernetes asks PodDisruptionBudgets about evictions only. A native rollout deletes pods and asks none of them (kubernetes#89820,
// #91808). With inplace.AnnotationDisruptionBudgets an update in place asks them before it takes a pod out of service, and before
// containers of a pod restart while it serves.
//
// # What is counted
//
// The API server grants an eviction by status.disruptionsAllowed, which the disruption controller counts on a cache that lags
// (checkAndDecrement in pkg/registry/core/pod/storage/eviction.go). That alone would let two pods go: the controller may not have seen that
// a pod is out. So Stayput counts the healthy pods as well. A pod is healthy if it is Ready and Stayput does not take it out of
// service. The smaller number is what the PodDisruptionBudget allows. Pods of other workloads count, too.
//
// The two counts may each miss another pod: one that was evicted shows in the status first, and one that was taken shows in neither yet, or
// shows in the status only when its kubelet has reported it. So what Stayput takes is taken off both (model_test.go tries all orders). If
// the cache is older than the disruption controller's, the status has all that the cache has. If it is newer, the cache has all that the
// status has, since both follow the same watch.
//
// A startup probe may revoke that a pod is Ready (readiness.ProvedStarted), and an eviction may be granted on that. Such a pod does not
// count as healthy, and yet it needs an allowance.
//
// A pod that is not Ready needs no allowance: nothing is lost with it, and an undo must always be possible.
//
// # What it must not know
//
// The package counts pods, whatever their workload is. Which pods are to be taken out of service, and that no two workers of the leader
// take the same allowance, is decided elsewhere (inplace/engine, controller/allowance).
package disruption
