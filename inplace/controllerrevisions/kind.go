package controllerrevisions

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/steps"
)

// Kind is a workload, and all that differs between the kinds of workloads whose pods name their revision in a label. A kind embeds Base,
// and has no method where that of Base is right.
type Kind interface {
	// Traits returns what is the same for all workloads of the kind, even of an empty one.
	Traits() engine.Traits
	// Workload returns what every plan needs of the workload, without the number of its pods: see Replicas.
	Workload() engine.Workload
	// Finished reports whether the native controller is done with the workload, as `kubectl rollout status` does
	// (kubectl/pkg/polymorphichelpers/rollout_status.go), and all pods are available.
	Finished() bool
	// Strategy returns why the workload's own strategy excludes updates in place; nil if it does not.
	Strategy() *inplace.Reason
	// On returns the kind with what follows from the snapshot. A native controller may look at pods and nodes before it knows how many pods it
	// wants, and where.
	On(seen *engine.Snapshot) Kind
	// Replicas returns how many pods the native controller wants.
	Replicas() int
	// Housekeeping returns why it deletes the pod whatever its revision is; empty if it does not.
	Housekeeping(pod *corev1.Pod) string
	// Budget returns how many more of these pods may become unavailable, if those that serves reports are available.
	Budget(pods []*Pod, serves func(*podstate.State) bool) int
	// NewPod returns what it would create in place of the pod, as JSON.
	NewPod(updateRevision *apps.ControllerRevision, instead *corev1.Pod) json.RawMessage
	// Preview returns how many pods the workload wants, how many of them that partition budget keeps, and how many may be unavailable. It
	// needs neither pods nor nodes.
	Preview(partition inplace.Partition) steps.Preview

	// What follows is usually as Base has it.

	// PodLabel returns the value of the label controller-revision-hash on pods of the revision.
	PodLabel(revision *apps.ControllerRevision) string
	// Compare orders pods, as slices.SortFunc does. No event may change the order.
	Compare(a, b *corev1.Pod) int
	// Kept reports whether the native controller leaves the pod as it is although its revision is another one than the update revision.
	Kept(pod *corev1.Pod) bool
	// Next returns those of the pods without the update revision that go on, or begin if the partition and the budget allow it, in that order.
	Next(pending []*Pod, budget podstate.Budget) []*Pod
	// ReplacementWaits returns why the native controller may not replace the pod now, which cannot be updated in place; empty if it may.
	ReplacementWaits(r Replacement) string
	// Beside returns the part of the snapshot on which a deletion of the pod depends, unless the pod must be replaced.
	Beside(pod *corev1.Pod, seen engine.Snapshot) engine.Snapshot
	// ReachingPods returns the part of a template's change that new pods show, where the native controller does not pass on the template as
	// it is.
	ReachingPods(change edit.Change) edit.Change
	// Lacks returns what the workload gives its new pods besides the template, and the pod does not have; nil if it has all.
	Lacks(pod *corev1.Pod) *inplace.Reason
}

// Base is what is usual of a Kind.
type Base struct{}

// PodLabel implements Kind: the revision's name.
func (Base) PodLabel(revision *apps.ControllerRevision) string { return revision.Name }

// Compare implements Kind: by name.
func (Base) Compare(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) }

// Kept implements Kind.
func (Base) Kept(*corev1.Pod) bool { return false }

// Next implements Kind. Pods that do not serve use up the partition first.
func (Base) Next(pending []*Pod, _ podstate.Budget) []*Pod {
	return slices.SortedStableFunc(slices.Values(pending), func(a, b *Pod) int { return podstate.ByCost(&a.State, &b.State) })
}

// ReplacementWaits implements Kind. The replacement waits for the pods that need not be replaced: see Replacement.OthersFirst. The
// replacement of a pod that is not available does not wait, since such a pod uses up the budget of the pods that it would wait for. It may
// be Ready, and on its way to a revision that is gone.
func (Base) ReplacementWaits(r Replacement) string {
	switch {
	case r.Held() && r.AtPartition():
		return "the pod stays at the partition"
	case !r.Available:
	case r.OthersFirst():
		return "other pods of the " + r.among.update.Workload.Kind + " are updated in place first"
	}
	return ""
}

// Beside implements Kind: it depends on all pods.
func (Base) Beside(_ *corev1.Pod, seen engine.Snapshot) engine.Snapshot { return seen }

// ReachingPods implements Kind.
func (Base) ReachingPods(change edit.Change) edit.Change { return change }

// Lacks implements Kind.
func (Base) Lacks(*corev1.Pod) *inplace.Reason { return nil }
