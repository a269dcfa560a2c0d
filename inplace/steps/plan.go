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
	PhaseStalled  Phase = "Stalled"  // progressDeadlineSeconds have passed, or the partition is none
	// PhasePartition: all that the partition lets move has moved.
	PhasePartition Phase = "Partition"
)

// Plan is what to do now.
type Plan struct {
	Decision Decision
	// Steps do not depend on one another: all may be carried out now, in the lots of Together, whatever becomes of the others.
	Steps []Step
	Phase Phase
	// Message is one clause about the phase.
	Message string
	// DryRun is what has to be known first: the plan is made again with the answer. Nil if nothing is asked.
	DryRun *DryRun
	// NoDryRun is why nobody knows what admission makes of new pods; empty if that is known, or not asked.
	NoDryRun string
	// After: look again then, even if nothing changes; 0 if that is not needed.
	After time.Duration
	// Deferred is what was due and waits for others to go along: see Beats.
	Deferred []Deferral
	Progress Progress
	// NotPulled is why images are not pulled before containers stop, on one node at least; empty where they are.
	NotPulled string
	// PullFailures tell of images that cannot be pulled, each in a sentence that stays the same while it is tried again.
	PullFailures []string
	// Bypassed tells of a native write that a webhook should have changed or held, and did not; one clause, empty if none is known.
	Bypassed string
}

// NativePlan for one on which nothing of ours is left.
func NativePlan(m inplace.Mode) Plan {
	return Plan{Decision: NativeDecision(m), Phase: PhaseNative, Message: m.Reason().Message}
}

// Progress counts pods.
type Progress struct {
	// Replicas are those the workload wants, Moved those that run what they should, Moving those under way: drained, restarting or resized.
	Replicas, Moved, Moving int32
	// Started is when the update was, zero if none is under way.
	Started time.Time
}

// String is the progress in one clause.
func (p Progress) String() string {
	return fmt.Sprintf("%d of %d pods updated, %d in progress", p.Moved, p.Replicas, p.Moving)
}

// DryRun asks for a rehearsal.
type DryRun struct {
	// UpdateRevision is the UID of the revision.
	UpdateRevision types.UID
	// Pod is one of that revision, raw so that fields newer than our types are kept.
	Pod json.RawMessage
	// Claims name the PersistentVolumeClaims that all its pods share: which of them is readiness.ForOneNode has to be known, too.
	Claims []string
	// Back: it is not of the update's target, but of a revision to which pods go back.
	Back bool
}

// Decision is whether Stayput makes the update.
type Decision struct {
	// Held: Stayput is the only scaler and the native controllers' writes are held.
	Held bool
	// UpdateRevision is the revision, a ReplicaSet or a ControllerRevision, whose pods all pods are to become; nil while nobody has created it.
	UpdateRevision metav1.Object
	// Reasons why the update is native. None, if not Held: there is nothing to update. A DaemonSet's may be Held with reasons:
	// some of its pods come in place, and the others natively after them.
	Reasons inplace.Reasons
}

// NativeDecision of a workload that the mode does not manage.
func NativeDecision(m inplace.Mode) Decision { return Decision{Reasons: inplace.Reasons{*m.Reason()}} }

// RevisionOf is the revision as the Target of a Verdict: an interface with a nil pointer in it would not be nil.
func RevisionOf[T any, P interface {
	*T
	metav1.Object
}](revision P) metav1.Object {
	if revision == nil {
		return nil
	}
	return revision
}
