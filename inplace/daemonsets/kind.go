package daemonsets

import (
	"encoding/json"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/controllerrevisions"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/steps"
)

// kind says what is special about a DaemonSet.
type kind struct{ DaemonSet *apps.DaemonSet }

// Of returns the DaemonSet as a controllerrevisions.Kind.
func Of(d *apps.DaemonSet) controllerrevisions.Kind { return kind{d} }

// Workload implements controllerrevisions.Kind.
func (k kind) Workload() engine.Workload {
	return engine.Workload{Object: k.DaemonSet, Kind: "DaemonSet", Template: k.DaemonSet.Spec.Template,
		MinReadySeconds: k.DaemonSet.Spec.MinReadySeconds, Kept: inplace.KeptOnDelete(k.DaemonSet.Spec.UpdateStrategy.Type, k.DaemonSet.Labels)}
}

// PodLabel implements controllerrevisions.Kind: revision and pods have the same label.
func (kind) PodLabel(revision *apps.ControllerRevision) string {
	return revision.Labels[inplace.LabelRevisionHash]
}

// Partition implements controllerrevisions.Kind.
func (kind) Partition(label inplace.Partition) inplace.Partition { return label }

// Compare implements controllerrevisions.Kind.
func (kind) Compare(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) }

// Kept implements controllerrevisions.Kind.
func (kind) Kept(*corev1.Pod) bool { return false }

// InOrder implements controllerrevisions.Kind.
func (kind) InOrder() bool { return false }

// WatchesRevisions implements controllerrevisions.Kind: updateHistory in pkg/controller/daemon/daemon_controller.go.
func (kind) WatchesRevisions() bool { return true }

// Next implements controllerrevisions.Kind. Pods that do not serve use up the partition first.
func (kind) Next(pending []*controllerrevisions.Pod, _ podstate.Budget) []*controllerrevisions.Pod {
	return slices.SortedStableFunc(slices.Values(pending), func(a, b *controllerrevisions.Pod) int {
		return podstate.ByCost(&a.State, &b.State)
	})
}

// ReplacementWaits implements controllerrevisions.Kind. The replacement waits for the pods that need not be replaced: see
// controllerrevisions.Replacement.OthersFirst. The replacement of a pod that is not available does not wait, since such a pod uses up the
// budget of the pods that it would wait for. It may be Ready, and on its way to a revision that is gone.
func (kind) ReplacementWaits(r controllerrevisions.Replacement) string {
	switch {
	case r.Held() && r.AtPartition():
		return "the pod stays at the partition"
	case !r.Available:
	case r.OthersFirst():
		return "other pods of the DaemonSet are updated in place first"
	}
	return ""
}

// Beside implements controllerrevisions.Kind: the node of the pod, and the pods there.
func (kind) Beside(pod *corev1.Pod, seen engine.Snapshot) engine.Snapshot {
	name := pod.Spec.NodeName
	if seen.Nodes != nil { // nil means that no node is known
		seen.Nodes = slices.DeleteFunc(slices.Clone(seen.Nodes), func(node *corev1.Node) bool { return node.Name != name })
	}
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

// Lacks implements controllerrevisions.Kind.
func (kind) Lacks(*corev1.Pod) *inplace.Reason { return nil }

// ReachingPods implements controllerrevisions.Kind. A toleration that the native controller replaces with its own is added to no pod.
func (k kind) ReachingPods(change edit.Change) edit.Change {
	own := daemonTolerations(k.DaemonSet.Spec.Template.Decoded().Spec.HostNetwork)
	change.Tolerations = slices.DeleteFunc(slices.Clone(change.Tolerations), replacedBy(own))
	return change
}

// NewPod implements controllerrevisions.Kind: the pod is for the same node.
func (k kind) NewPod(updateRevision *apps.ControllerRevision, instead *corev1.Pod) json.RawMessage {
	return dryrun.NewPod(podTemplate(k.DaemonSet, updateRevision, instead.Spec.NodeName), k.DaemonSet, "DaemonSet")
}

// Preview implements controllerrevisions.Kind, by the counts of the native controller's status.
func (k kind) Preview(partition inplace.Partition) steps.Preview {
	pods := int(k.DaemonSet.Status.DesiredNumberScheduled)
	return steps.Preview{Pods: pods, AtPartition: partition.Keeps(pods), AtATime: k.DaemonSet.MaxUnavailable(pods)}
}
