package steps

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
)

// Phase is what an update is doing.
type Phase string

// The phases.
const (
	PhaseIdle     Phase = "Idle"     // nothing to update
	PhaseNative   Phase = "Native"   // the native controller updates
	PhaseWaiting  Phase = "Waiting"  // for what the native controllers do first
	PhaseScaling  Phase = "Scaling"  // pods are added or removed
	PhaseMoving   Phase = "Moving"   // pods change their ReplicaSet
	PhaseUpdating Phase = "Updating" // pods are drained or restart
	PhasePaused   Phase = "Paused"   // by the user
	PhaseStalled  Phase = "Stalled"  // progressDeadlineSeconds have passed, or the partition is not valid
	// PhasePartition: all pods that the partition lets move have moved.
	PhasePartition Phase = "Partition"
	// PhaseWindow: pods that the partition would let move wait for the maintenance window to open.
	PhaseWindow Phase = "Window"
	// PhaseBudget: no pod is in progress, and a PodDisruptionBudget allows no disruption.
	PhaseBudget Phase = FilterBudget
	// PhaseLimit: no pod is in progress, and a limit on how many pods of all workloads restart at a time keeps all others in service.
	PhaseLimit Phase = FilterLimit
)

// Plan is what to do now.
type Plan struct {
	Decision Decision
	// Steps do not depend on one another. All may be carried out now, in their Lots, whatever happens to the others.
	Steps []Step
	Phase Phase
	// Message is one clause about the phase.
	Message string
	// DryRun is the dry run that is needed first: the caller makes the plan again with its answer. Nil if none is needed.
	DryRun *DryRun
	// NoDryRun is why it is not known what admission makes of new pods; empty if that is known, or not needed.
	NoDryRun string
	// After is the time after which to look again even if nothing changes; 0 if that is not needed.
	After time.Duration
	// Deferred is what was due and waits for more of its kind: see Batches.
	Deferred []Deferral
	Progress Progress
	// Images are those that nodes pull although a partition keeps all pods.
	Images Images
	// NotPulled is why images are not pulled before containers stop, on at least one node; empty where they are pulled.
	NotPulled string
	// PullFailures are about images that cannot be pulled. Each is one sentence that stays the same while the kubelet tries again.
	PullFailures []string
	// Waits are why pods do not go on now. An image that cannot be pulled comes first.
	Waits []Wait
	// OnRequest: pods are taken out of service because their own annotations ask for restarts, and not for an update.
	OnRequest bool
	// Overtaken: the plan takes pods out of service for which a limit or a PodDisruptionBudget has left no room since.
	Overtaken bool
	// Bypassed is about a native write that a webhook should have changed or held, and did not; one clause, empty if none is known.
	Bypassed string
	// Obstacle is why the update waits instead of falling back.
	Obstacle inplace.Obstacle
}

// Confirmed reports whether the steps that take pods out of service are confirmed before they are carried out: those of an update in place,
// and those that pods ask for.
func (p Plan) Confirmed() bool { return p.Decision.Held || p.OnRequest }

// Refused returns the phase of an update of which a PodDisruptionBudget or a limit keeps a pod in service that would be next; empty if none
// does.
func (p Plan) Refused() Phase {
	for _, wait := range p.Waits {
		if wait.Shared {
			return Phase(wait.Filter)
		}
	}
	return ""
}

// NativePlan returns the plan for a workload on which Stayput has left nothing.
func NativePlan(m inplace.Mode) Plan {
	return Plan{Decision: NativeDecision(m), Phase: PhaseNative, Message: m.Reason().Message}
}

// Progress counts pods.
type Progress struct {
	// Replicas are the pods that the workload wants. Moved are those that run what they should. Moving are those in progress: being drained,
	// restarting or resized.
	Replicas, Moved, Moving int32
	// Started is when the update started, zero if none is in progress.
	Started time.Time
}

// String returns the progress in one clause.
func (p Progress) String() string {
	return fmt.Sprintf("%d of %d pods updated, %d in progress", p.Moved, p.Replicas, p.Moving)
}

// Stage is how far the partition lets an update go.
type Stage struct {
	// Kept is how many of the Pods keep their old revision.
	Kept, Pods int
	// Reached: some pods are kept, and all others are updated and available.
	Reached bool
}

// Images counts the nodes that have the new images, where a partition keeps all pods. There are no Nodes where nothing is pulled for that.
type Images struct {
	On, Nodes int
	// Pulling: some nodes have yet to pull.
	Pulling bool
}

// After returns the message with the count in one clause; the message as it is if it is empty, or if there are no Nodes.
func (i Images) After(message string) string {
	if message == "" || i.Nodes == 0 {
		return message
	}
	return fmt.Sprintf("%s; new images on %d of %d nodes", message, i.On, i.Nodes)
}

// DryRun asks for a dry run.
type DryRun struct {
	// UpdateRevision is the UID of the revision.
	UpdateRevision types.UID
	// Pod is a pod of that revision. It is raw, so that fields newer than Stayput's types are kept.
	Pod json.RawMessage
	// Claims are the names of the PersistentVolumeClaims that all pods of the revision share. The answer must also say which of them is
	// readiness.ForOneNode.
	Claims []string
	// Back: the dry run is not for the update revision, but for a revision that pods go back to.
	Back bool
}

// Decision is whether Stayput makes the update.
type Decision struct {
	// Held: only Stayput scales, and the native controllers' writes are held.
	Held bool
	// UpdateRevision is the ReplicaSet or ControllerRevision that all pods are to belong to; nil as long as it does not exist.
	UpdateRevision metav1.Object
	// Reasons are why the update is native. If there are none and Held is false, there is nothing to update. A DaemonSet may be Held with
	// reasons: some of its pods are updated in place, and the others natively after them.
	Reasons inplace.Reasons
	// Waits: the update is Held although it cannot be made in place, for the first of the Reasons. It was accepted as one in place, and now
	// it waits.
	Waits bool
}

// Native reports whether there is an update, and the native controller makes all of it.
func (d Decision) Native() bool { return !d.Held && len(d.Reasons) > 0 }

// NativeDecision returns the decision on a workload that the mode does not manage.
func NativeDecision(m inplace.Mode) Decision { return Decision{Reasons: inplace.Reasons{*m.Reason()}} }

// RevisionOf returns the revision as the UpdateRevision of a Decision. An interface that holds a nil pointer would not be nil.
func RevisionOf[T any, P interface {
	*T
	metav1.Object
}](revision P) metav1.Object {
	if revision == nil {
		return nil
	}
	return revision
}
