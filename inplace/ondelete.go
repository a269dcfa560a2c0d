package inplace

// AsksItself reports whether a workload with these labels asks by itself for updates in place. With strategy OnDelete nothing else does:
// natively it is the user, or an operator, who decides when a pod is updated.
func AsksItself(labels map[string]string) bool { return Mode(labels[LabelUpdate]).Manages() }

// KeptOnDelete returns why pods that are not updated in place keep their revision; nil if they do not keep it: the strategy is another one,
// or the workload does not ask for updates in place. With strategy OnDelete the native controllers create revisions or pods and write the
// status, and delete no pod for an update (updateDaemonSet in pkg/controller/daemon/daemon_controller.go, updateStatefulSet in
// pkg/controller/statefulset/stateful_set_control.go). So no deletion of a pod is held, and no update can fall back to new pods.
func KeptOnDelete[Strategy ~string](strategy Strategy, labels map[string]string) *Reason {
	if strategy != "OnDelete" || !AsksItself(labels) {
		return nil
	}
	return &Reason{Code: CodeOnDelete, Path: "/spec/updateStrategy/type",
		Message: "with strategy OnDelete each pod keeps its revision until you delete it"}
}

// NativeOnDelete returns why a workload with strategy OnDelete and these labels is not updated in place; nil if it asks for that.
func NativeOnDelete(labels map[string]string) *Reason {
	if AsksItself(labels) {
		return nil
	}
	return &Reason{Code: CodeStrategy, Path: "/spec/updateStrategy/type",
		Message: "with strategy OnDelete the user decides when a pod is updated"}
}
