package inplace

const (
	// LabelOnDelete says that the pods of a StatefulSet or DaemonSet with `updateStrategy: OnDelete` are updated in place all the same, one
	// at a time. A pod that cannot be updated in place keeps its revision until you delete it.
	//
	// With that strategy the native controller deletes no pod for an update. So no deletion of a pod is held, and no update can fall back to
	// new pods.
	LabelOnDelete = "stayput.dev/on-delete"

	// OnDeleteInPlace is the value of LabelOnDelete.
	OnDeleteInPlace = "in-place"
)

// KeptOnDelete returns why pods that are not updated in place keep their revision; nil if they do not keep it: the strategy is another one,
// or the labels do not ask for updates in place. With strategy OnDelete the native controllers create revisions or pods and write the
// status, and delete no pod for an update (updateDaemonSet in pkg/controller/daemon/daemon_controller.go, updateStatefulSet in
// pkg/controller/statefulset/stateful_set_control.go).
func KeptOnDelete[Strategy ~string](strategy Strategy, labels map[string]string) *Reason {
	if strategy != "OnDelete" || labels[LabelOnDelete] != OnDeleteInPlace {
		return nil
	}
	return &Reason{Code: CodeOnDelete, Path: "/spec/updateStrategy/type",
		Message: "with strategy OnDelete each pod keeps its revision until you delete it"}
}

// NativeOnDelete returns why a workload with strategy OnDelete and these labels is not updated in place; nil if they ask for that.
func NativeOnDelete(labels map[string]string) *Reason {
	if labels[LabelOnDelete] == OnDeleteInPlace {
		return nil
	}
	return &Reason{Code: CodeStrategy, Path: "/spec/updateStrategy/type",
		Message: "with strategy OnDelete the user decides when a pod is updated"}
}
