package controllerrevisions

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/steps"
)

// Kind is a workload, and what differs between the kinds of workloads whose pods name their revision in a label.
type Kind interface {
	// Workload returns what every plan needs of the workload, without the number of its pods: see Native.
	Workload() engine.Workload
	// Native returns what the native controller does with the pods and nodes of the snapshot.
	Native(seen *engine.Snapshot) Native
	// Strategy returns why the workload's own strategy excludes updates in place; nil if it does not.
	Strategy() *inplace.Reason
	// Partition returns the partition budget where the label stayput.dev/partition has that value.
	Partition(label inplace.Partition) inplace.Partition
	// PodLabel returns the value of the label controller-revision-hash on pods of the revision.
	PodLabel(revision *apps.ControllerRevision) string
	// Compare orders pods, as slices.SortFunc does. No event may change the order.
	Compare(a, b *corev1.Pod) int
	// Kept reports whether the native controller leaves the pod as it is although its revision is another one than the update revision.
	Kept(pod *corev1.Pod) bool
	// Next returns those of the pods without the update revision that go on, or begin if the partition and the budget allow it, in that order.
	Next(pending []*Pod, budget podstate.Budget) []*Pod
	// InOrder reports whether a pod that waits for a PodDisruptionBudget has those after it wait, too, if they serve.
	InOrder() bool
	// ReplacementWaits returns why the native controller may not replace the pod now, which cannot be updated in place; empty if it may.
	ReplacementWaits(r Replacement) string
	// Beside returns the part of the snapshot on which a deletion of the pod depends, unless the pod must be replaced.
	Beside(pod *corev1.Pod, seen engine.Snapshot) engine.Snapshot
	// WatchesRevisions reports whether an event of a ControllerRevision makes the native controller look at its workload. If not, an event of
	// a pod does.
	WatchesRevisions() bool
	// ReachingPods returns the part of a template's change that new pods show, where the native controller does not pass on the template as
	// it is.
	ReachingPods(change edit.Change) edit.Change
	// Lacks returns what the workload gives its new pods besides the template, and the pod does not have; nil if it has all.
	Lacks(pod *corev1.Pod) *inplace.Reason
	// NewPod returns what the native controller would create in place of the pod, as JSON.
	NewPod(updateRevision *apps.ControllerRevision, instead *corev1.Pod) json.RawMessage
	// Preview returns how many pods the workload wants, how many of them that partition keeps, and how many may be unavailable. It needs
	// neither pods nor nodes.
	Preview(partition inplace.Partition) steps.Preview
}

// Native is what the native controller does with the pods and nodes that were observed.
type Native interface {
	// Replicas returns how many pods it wants.
	Replicas() int
	// Housekeeping returns why it deletes the pod whatever its revision is; empty if it does not.
	Housekeeping(pod *corev1.Pod) string
	// Budget returns how many more of these pods may become unavailable, if those that serves reports are available.
	Budget(pods []*Pod, serves func(*podstate.State) bool) int
}
