package inplace

// groupLabel is on the template of every workload of a LeaderWorkerSet: its leaders' StatefulSet or Deployment, and the StatefulSet of each
// group's workers.
const groupLabel = "leaderworkerset.sigs.k8s.io/name"

// NativeGroups returns why pods with these labels are not updated in place; nil if they may be. A LeaderWorkerSet never edits the
// StatefulSet of a group's workers: it deletes that with the leader's pod, and creates another (PodReconciler of
// pkg/controllers/pod_controller.go in sigs.k8s.io/lws). So if leaders were updated in place, their workers would stay as they are for
// ever. And by default it takes a container that restarts for a failure, and recreates the group.
func NativeGroups(labels map[string]string) *Reason {
	if _, is := labels[groupLabel]; !is {
		return nil
	}
	return &Reason{Code: CodeGroups, Path: "/metadata/labels/leaderworkerset.sigs.k8s.io~1name",
		Message: "a LeaderWorkerSet recreates its pods group by group"}
}
