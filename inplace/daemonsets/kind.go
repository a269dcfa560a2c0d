package daemonsets

import (
	"encoding/json"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/controllerrevisions"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/steps"
)

// kind says what is special about a DaemonSet.
type kind struct {
	controllerrevisions.Base
	DaemonSet *apps.DaemonSet
	onNodes
}

// Of returns the DaemonSet as a controllerrevisions.Kind.
func Of(d *apps.DaemonSet) controllerrevisions.Kind { return kind{DaemonSet: d} }

// Traits implements controllerrevisions.Kind: syncNodes and updateHistory in pkg/controller/daemon/daemon_controller.go. After any other
// error than NotFound the controller records FailedDelete and tries again.
func (kind) Traits() engine.Traits {
	return engine.Traits{ShortName: "ds", PodsBy: inplace.NativeController("daemon-set-controller"), FewWorkers: true, OnEveryNode: true,
		GoneIfNotFound: true, WatchesRevisions: true}
}

// Workload implements controllerrevisions.Kind.
func (k kind) Workload() engine.Workload {
	return engine.Workload{Object: k.DaemonSet, Kind: "DaemonSet", Template: k.DaemonSet.Spec.Template,
		MinReadySeconds: k.DaemonSet.Spec.MinReadySeconds, Kept: inplace.KeptOnDelete(k.DaemonSet.Spec.UpdateStrategy.Type, k.DaemonSet.Labels)}
}

// PodLabel implements controllerrevisions.Kind: revision and pods have the same label.
func (kind) PodLabel(revision *apps.ControllerRevision) string {
	return revision.Labels[inplace.LabelRevisionHash]
}

// Beside implements controllerrevisions.Kind: the node of the pod, and the pods there.
func (kind) Beside(pod *corev1.Pod, seen engine.Snapshot) engine.Snapshot {
	name := pod.Spec.NodeName
	// If no node is known, Nodes is nil and stays nil. An empty list would mean that the node is gone.
	seen.Nodes = slices.DeleteFunc(slices.Clone(seen.Nodes), func(node *corev1.Node) bool { return node.Name != name })
	seen.Pods = slices.DeleteFunc(slices.Clone(seen.Pods), func(other *corev1.Pod) bool { return other.Spec.NodeName != name })
	return seen
}

// Strategy implements controllerrevisions.Kind.
func (k kind) Strategy() *inplace.Reason {
	switch {
	case k.DaemonSet.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType: // then maxSurge says nothing
		return inplace.NativeOnDelete(k.DaemonSet.Labels)
	case k.DaemonSet.Surges():
		return &inplace.Reason{Code: inplace.CodeStrategy, Path: "/spec/updateStrategy/rollingUpdate/maxSurge",
			Message: "maxSurge asks for a new pod before the old one goes"}
	}
	return nil
}

// ReachingPods implements controllerrevisions.Kind. A toleration that the native controller replaces with its own is added to no pod.
func (k kind) ReachingPods(change edit.Change) edit.Change {
	own := daemonTolerations(k.DaemonSet.Spec.Template.Decoded().Spec.HostNetwork)
	change.Tolerations = slices.DeleteFunc(slices.Clone(change.Tolerations), replacedBy(own))
	return change
}

// NewPod implements controllerrevisions.Kind: the pod is for the same node.
func (k kind) NewPod(updateRevision *apps.ControllerRevision, instead *corev1.Pod) json.RawMessage {
	return dryrun.NewPod(podTemplate(k.DaemonSet, updateRevision, instead.Spec.NodeName), k.DaemonSet)
}

// Preview implements controllerrevisions.Kind, by the counts of the native controller's status.
func (k kind) Preview(partition inplace.Partition) steps.Preview {
	pods := int(k.DaemonSet.Status.DesiredNumberScheduled)
	return steps.Preview{Pods: pods, AtPartition: partition.Keeps(pods), AtATime: k.DaemonSet.MaxUnavailable(pods)}
}

// Finished implements controllerrevisions.Kind.
func (k kind) Finished() bool {
	status := k.DaemonSet.Status
	return status.ObservedGeneration >= k.DaemonSet.Generation &&
		status.UpdatedNumberScheduled >= status.DesiredNumberScheduled && status.NumberAvailable >= status.DesiredNumberScheduled
}
