package deployments

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/patches"
)

// These are reasons of Deployment conditions, from pkg/controller/deployment/util/deployment_util.go. Kubectl and other tools know
// them.
const (
	ReasonUpdated            = "ReplicaSetUpdated"
	ReasonFound              = "FoundNewReplicaSet"
	ReasonComplete           = "NewReplicaSetAvailable"
	ReasonTimedOut           = "ProgressDeadlineExceeded"
	ReasonPaused             = "DeploymentPaused"
	ReasonResumed            = "DeploymentResumed"
	ReasonMinimumAvailable   = "MinimumReplicasAvailable"
	ReasonMinimumUnavailable = "MinimumReplicasUnavailable"
)

// StatusFormula computes the status of a Deployment as the native controller would write it, by the native formula.
//
// Both writers must always write the same status. So it knows ReplicaSets and their counts, and nothing of pods, of
// Stayput's marks and of turns.
//
// The Deployment controller writes the status after it has scaled, and while its scaling is held it does not get there. So the leader
// writes it. The observed generation and conditions that change are written at once, because users and tools act on them. While pods
// change their ReplicaSet, the sums are from two moments, so conditions wait for a batch window. Counts that have only gone on are written
// a second after the first did (countsWait). Stayput never reports completion: when no pod is left on old ReplicaSets, the native
// controller finishes, reports and cleans up.
//
// progressDeadlineSeconds is kept as natively, with one difference. Natively a new pod starts while an old one stops. In place one comes
// after the other. So the deadline runs from when pods were last drained or stopped within the time that they have for it: the drain and
// the wait for EndpointSlices, or the grace period and 10 s (OnTimeUntil). The kubelet reports when the earlier container ended.
type StatusFormula struct {
	Deployment *apps.Deployment
	// Sets are all ReplicaSets that the Deployment owns. New is the one whose template is the Deployment's. It is nil until it has
	// been created.
	Sets []*apps.ReplicaSet
	New  *apps.ReplicaSet
	// Waiting is what an update waits for if nothing restarts, as one clause. It is empty if the update waits for nothing.
	Waiting string
	// Stage says, as one clause, at which partition the rollout waits. It is empty if the rollout does not wait at one. Waiting at a
	// partition is treated like a rollout that the user has paused.
	Stage string
	// ByWindow: it is a closed maintenance window that it waits for.
	ByWindow bool
	// OnTimeUntil is until when pods were draining or stopping within the time that they have for it. It is Now while they do, and
	// zero if they did not. No progress is expected before that time.
	OnTimeUntil time.Time
	Now         time.Time
}

// NativeStatus returns the status as the native controller writes it: syncDeploymentStatus (pkg/controller/deployment/sync.go)
// while paused, syncRolloutStatus (progress.go) otherwise.
func (f StatusFormula) NativeStatus() appsv1.DeploymentStatus {
	status := f.counts()
	if f.Deployment.Spec.Paused {
		return status
	}
	f.setProgress(&status)
	if failure := f.ReplicaFailure(); failure != nil {
		SetCondition(&status, *failure)
	} else {
		RemoveCondition(&status, appsv1.DeploymentReplicaFailure)
	}
	return status
}

// counts is calculateStatus in sync.go: it sums over all owned ReplicaSets.
func (f StatusFormula) counts() appsv1.DeploymentStatus {
	old, wanted := f.Deployment.Status, int32(0)
	status := appsv1.DeploymentStatus{ObservedGeneration: f.Deployment.Generation, CollisionCount: old.CollisionCount,
		Conditions: slices.Clone(old.Conditions), TerminatingReplicas: f.Terminating()}
	for _, s := range f.Sets {
		status.Replicas += s.Status.Replicas
		status.ReadyReplicas += s.Status.ReadyReplicas
		status.AvailableReplicas += s.Status.AvailableReplicas
		wanted += apps.Replicas(s) // GetReplicaCountForReplicaSets
	}
	if f.New != nil {
		status.UpdatedReplicas = f.New.Status.Replicas
	}
	status.UnavailableReplicas = max(0, wanted-status.AvailableReplicas)
	available := NewCondition(appsv1.DeploymentAvailable, corev1.ConditionFalse, ReasonMinimumUnavailable,
		"Deployment does not have minimum availability.", f.Now)
	if status.AvailableReplicas >= apps.Desired(f.Deployment)-f.Deployment.MaxUnavailable() {
		available = NewCondition(appsv1.DeploymentAvailable, corev1.ConditionTrue, ReasonMinimumAvailable,
			"Deployment has minimum availability.", f.Now)
	}
	SetCondition(&status, available)
	return status
}

// Terminating is GetTerminatingReplicaCountForReplicaSets. The field exists only if its feature gate is on. Statuses that were
// written before show whether it is.
func (f StatusFormula) Terminating() *int32 {
	known := f.Deployment.Status.TerminatingReplicas != nil
	sum := int32(0)
	for _, s := range f.Sets {
		switch terminating := s.Status.TerminatingReplicas; {
		case terminating != nil:
			known = true
			sum += *terminating
		case s.Status.ObservedGeneration > 0:
			return nil
		}
	}
	if !known {
		return nil
	}
	return &sum
}

// setProgress sets the condition Progressing as syncRolloutStatus does, except for completion.
func (f StatusFormula) setProgress(status *appsv1.DeploymentStatus) {
	current := apps.DeploymentCondition(f.Deployment.Status, appsv1.DeploymentProgressing)
	switch {
	case !HasDeadline(f.Deployment):
		RemoveCondition(status, appsv1.DeploymentProgressing)
	case current != nil && current.Reason == ReasonComplete && status.Replicas == status.UpdatedReplicas, Complete(f.Deployment, *status):
		// the rollout is complete, or will be in a moment
	case f.setStage(status, current):
	case progressed(f.Deployment.Status, *status):
		replaceCondition(status,
			NewCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, ReasonUpdated, f.subject()+" is progressing.", f.Now))
	case current != nil && current.Reason == ReasonPaused:
		f.resume(status) // checkPausedConditions in sync.go comes first: the time of a pause does not count
	case f.New != nil && current != nil && current.Reason == ReasonComplete:
		// The native controller replaces the condition of the last update when it creates the new ReplicaSet (getNewReplicaSet in
		// sync.go) or when that gets its first pod. Stayput's status may be written before the former, and the latter may come late. A
		// condition that is complete never times out.
		SetCondition(status, NewCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, ReasonFound,
			fmt.Sprintf("Found new replica set %q", f.New.Name), f.Now))
	case f.timedOut(current):
		f.setTimedOut(status, current)
	case f.renews(current):
		renewed := *current
		renewed.LastUpdateTime = metav1.NewTime(f.lastProgress(current))
		replaceCondition(status, renewed)
	}
}

// renews reports whether the condition must say that the deadline runs from a later moment. In a native rollout another pod starts
// while the old one stops. In place, the same pod cannot do both. The native controller looks at the deadline of the condition
// alone, at any moment. So the condition's time is renewed when half the deadline has passed. Thus the time at which the wait ended
// is written before the other half has passed.
func (f StatusFormula) renews(progressing *appsv1.DeploymentCondition) bool {
	return progressing != nil && f.lastProgress(progressing).After(progressing.LastUpdateTime.Time) &&
		f.Now.Sub(progressing.LastUpdateTime.Time) >= Deadline(f.Deployment)/2
}

// OutlastsDeadline reports whether pods that stop until the given time may still be stopping when half the deadline has passed. Then a
// manager has to renew the condition. In any case the other half is left for the new containers to start.
func (f StatusFormula) OutlastsDeadline(stops time.Time) bool {
	progressing := apps.DeploymentCondition(f.Deployment.Status, appsv1.DeploymentProgressing)
	deadlineRuns := HasDeadline(f.Deployment) && progressing != nil && !Overdue(f.Deployment)
	if !deadlineRuns || !stops.After(f.Now) || LooksComplete(f.Deployment, f.counts()) {
		return false
	}
	since := progressing.LastUpdateTime.Time
	if progressing.Reason == ReasonComplete {
		since = f.Now // the condition's time is that of the last update, and will be renewed
	}
	return stops.After(since.Add(Deadline(f.Deployment) / 2))
}

// lastProgress returns the moment from which the deadline runs. Conditions have no fractions of seconds.
func (f StatusFormula) lastProgress(progressing *appsv1.DeploymentCondition) time.Time {
	if onTimeUntil := f.OnTimeUntil.Truncate(time.Second); onTimeUntil.After(progressing.LastUpdateTime.Time) {
		return onTimeUntil
	}
	return progressing.LastUpdateTime.Time
}

// These are the reasons of a Deployment's condition Progressing while only the partition, or a closed maintenance window, stops the
// rollout.
const (
	ReasonPartition = "WaitingAtPartition"
	ReasonWindow    = "WaitingForWindow"
)

// staged reports whether the condition says that only one of these stops the rollout.
func staged(c *appsv1.DeploymentCondition) bool {
	return c != nil && (c.Reason == ReasonPartition || c.Reason == ReasonWindow)
}

// setStage reports whether the rollout waits at its partition, or continues from there. It says so in the condition, as
// checkPausedConditions in sync.go does for a paused rollout. The native controller does not know this reason, and takes the
// condition's time for that of the last progress. So the time is renewed: otherwise the deadline would have passed when the native
// controller, or Stayput, continues.
func (f StatusFormula) setStage(status *appsv1.DeploymentStatus, current *appsv1.DeploymentCondition) bool {
	reason := ReasonPartition
	if f.ByWindow {
		reason = ReasonWindow
	}
	switch {
	case f.Stage == "" && staged(current):
		f.resume(status)
		return true
	case f.Stage == "", Overdue(f.Deployment) && !progressed(f.Deployment.Status, *status):
		return false
	case staged(current) && current.Reason == reason && current.Message == f.Stage &&
		f.Now.Sub(current.LastUpdateTime.Time) < Deadline(f.Deployment)/2:
		return true
	}
	replaceCondition(status, NewCondition(appsv1.DeploymentProgressing, corev1.ConditionUnknown, reason, f.Stage, f.Now))
	return true
}

func (f StatusFormula) resume(status *appsv1.DeploymentStatus) {
	SetCondition(status, NewCondition(appsv1.DeploymentProgressing, corev1.ConditionUnknown, ReasonResumed, "Deployment is resumed", f.Now))
}

// setTimedOut sets the condition of a rollout that has exceeded its deadline: the native message, and what the update waits for. Either
// controller may see first that the deadline has passed, so the native message alone is completed. The native controller does not overwrite
// it, because it writes a condition only when status or reason change.
func (f StatusFormula) setTimedOut(status *appsv1.DeploymentStatus, current *appsv1.DeploymentCondition) {
	native := f.subject() + timedOut
	exceeded := NewCondition(appsv1.DeploymentProgressing, corev1.ConditionFalse, ReasonTimedOut, native, f.Now)
	if f.Waiting != "" {
		exceeded.Message += " It is " + f.Waiting + "."
		if current.Reason == ReasonTimedOut && current.Message == native {
			exceeded.LastUpdateTime, exceeded.LastTransitionTime = current.LastUpdateTime, current.LastTransitionTime
			RemoveCondition(status, appsv1.DeploymentProgressing)
		}
	}
	SetCondition(status, exceeded)
}

// timedOut is what the native controller says of a Deployment or ReplicaSet that has exceeded the deadline.
const timedOut = " has timed out progressing."

func (f StatusFormula) subject() string {
	if f.New == nil {
		return fmt.Sprintf("Deployment %q", f.Deployment.Name)
	}
	return subjectOf(f.New)
}

func subjectOf(newRS *apps.ReplicaSet) string { return fmt.Sprintf("ReplicaSet %q", newRS.Name) }

// Complete is DeploymentComplete: with that status, the Deployment controller takes the rollout for complete.
func Complete(d *apps.Deployment, status appsv1.DeploymentStatus) bool {
	want := apps.Desired(d)
	return status.UpdatedReplicas == want && status.Replicas == want && status.AvailableReplicas == want &&
		status.ObservedGeneration >= d.Generation
}

// Overdue reports whether the Deployment's status says that the rollout has exceeded its progress deadline.
func Overdue(d *apps.Deployment) bool {
	progressing := apps.DeploymentCondition(d.Status, appsv1.DeploymentProgressing)
	return progressing != nil && progressing.Reason == ReasonTimedOut
}

// Stalled returns the message of the condition by which the update has exceeded its progress deadline; empty if it has not. After a
// further edit the condition stays until a pod progresses. It names the ReplicaSet that it is about.
func (r Rollout) Stalled() string {
	d, newRS := r.Deployment, r.UpdateRevision()
	progressing := apps.DeploymentCondition(d.Status, appsv1.DeploymentProgressing)
	if newRS == nil || !Overdue(d) || d.Status.ObservedGeneration < d.Generation ||
		!strings.HasPrefix(progressing.Message, subjectOf(newRS)+timedOut) {
		return ""
	}
	return progressing.Message
}

// progressed is DeploymentProgressing.
func progressed(old, status appsv1.DeploymentStatus) bool {
	return status.UpdatedReplicas > old.UpdatedReplicas ||
		status.Replicas-status.UpdatedReplicas < old.Replicas-old.UpdatedReplicas ||
		status.ReadyReplicas > old.ReadyReplicas || status.AvailableReplicas > old.AvailableReplicas
}

// timedOut is DeploymentTimedOut.
func (f StatusFormula) timedOut(progressing *appsv1.DeploymentCondition) bool {
	if progressing == nil || progressing.Reason == ReasonComplete {
		return false
	}
	return progressing.Reason == ReasonTimedOut || f.lastProgress(progressing).Add(Deadline(f.Deployment)).Before(f.Now)
}

// HasDeadline reports whether a rollout of the Deployment can exceed a progress deadline. It is HasProgressDeadline.
func HasDeadline(d *apps.Deployment) bool {
	seconds := d.Spec.ProgressDeadlineSeconds
	return seconds != nil && *seconds != math.MaxInt32
}

// Deadline returns the progress deadline of a Deployment that has one.
func Deadline(d *apps.Deployment) time.Duration {
	return time.Duration(*d.Spec.ProgressDeadlineSeconds) * time.Second
}

// UntilDeadline returns when to check whether the deadline has passed, or 0 if that is not needed. It is requeueStuckDeployment.
func (f StatusFormula) UntilDeadline(status appsv1.DeploymentStatus) time.Duration {
	progressing := apps.DeploymentCondition(status, appsv1.DeploymentProgressing)
	if !HasDeadline(f.Deployment) || f.Deployment.Spec.Paused || progressing == nil ||
		progressing.Reason == ReasonTimedOut || progressing.Reason == ReasonComplete {
		return 0
	}
	deadline := Deadline(f.Deployment)
	if staged(progressing) || f.OnTimeUntil.Equal(f.Now) ||
		f.lastProgress(progressing).After(progressing.LastUpdateTime.Time) {
		deadline /= 2
	}
	_, wait := inplace.Since(progressing.LastUpdateTime.Time, deadline, f.Now)
	return wait + time.Second
}

// ReplicaFailure is getReplicaFailures in progress.go: the failure of the new ReplicaSet rather than that of another one. It is nil
// if there is none.
func (f StatusFormula) ReplicaFailure() *appsv1.DeploymentCondition {
	sets := f.Sets
	if f.New != nil {
		sets = append([]*apps.ReplicaSet{f.New}, f.Sets...)
	}
	for _, s := range sets {
		if c := apps.FailureOf(s); c != nil {
			return &appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: c.Status, Reason: c.Reason,
				Message: c.Message, LastUpdateTime: c.LastTransitionTime, LastTransitionTime: c.LastTransitionTime}
		}
	}
	return nil
}

// NewCondition is NewDeploymentCondition, with the given time.
func NewCondition(kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string,
	now time.Time) appsv1.DeploymentCondition {
	at := metav1.NewTime(now)
	return appsv1.DeploymentCondition{Type: kind, Status: status, Reason: reason, Message: message, LastUpdateTime: at, LastTransitionTime: at}
}

// SetCondition is SetDeploymentCondition: it does nothing unless status or reason change.
func SetCondition(status *appsv1.DeploymentStatus, condition appsv1.DeploymentCondition) {
	current := apps.DeploymentCondition(*status, condition.Type)
	if current == nil || current.Status != condition.Status || current.Reason != condition.Reason {
		replaceCondition(status, condition)
	}
}

// replaceCondition sets the condition even if status and reason stay.
func replaceCondition(status *appsv1.DeploymentStatus, condition appsv1.DeploymentCondition) {
	if current := apps.DeploymentCondition(*status, condition.Type); current != nil && current.Status == condition.Status {
		condition.LastTransitionTime = current.LastTransitionTime
	}
	RemoveCondition(status, condition.Type)
	status.Conditions = append(status.Conditions, condition)
}

// RemoveCondition is RemoveDeploymentCondition.
func RemoveCondition(status *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType) {
	status.Conditions = slices.DeleteFunc(slices.Clone(status.Conditions), func(c appsv1.DeploymentCondition) bool { return c.Type == kind })
}

// StatusOperations returns operations for the fields that change. Fields that Stayput does not know stay as they are.
func StatusOperations(old, status appsv1.DeploymentStatus) []jsonpatch.Operation {
	var operations []jsonpatch.Operation
	change := func(field string, from, to any) {
		if !equality.Semantic.DeepEqual(from, to) {
			operations = append(operations, jsonpatch.NewOperation("add", patches.Pointer("status", field), to))
		}
	}
	change("observedGeneration", old.ObservedGeneration, status.ObservedGeneration)
	change("replicas", old.Replicas, status.Replicas)
	change("updatedReplicas", old.UpdatedReplicas, status.UpdatedReplicas)
	change("readyReplicas", old.ReadyReplicas, status.ReadyReplicas)
	change("availableReplicas", old.AvailableReplicas, status.AvailableReplicas)
	change("unavailableReplicas", old.UnavailableReplicas, status.UnavailableReplicas)
	if status.TerminatingReplicas != nil {
		change("terminatingReplicas", old.TerminatingReplicas, status.TerminatingReplicas)
	}
	change("conditions", old.Conditions, status.Conditions)
	return operations
}

// SameConditions reports whether the statuses differ only in counts and times.
func SameConditions(a, b appsv1.DeploymentStatus) bool {
	same := func(a, b appsv1.DeploymentCondition) bool {
		return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason
	}
	byType := func(a, b appsv1.DeploymentCondition) int { return strings.Compare(string(a.Type), string(b.Type)) }
	return a.ObservedGeneration == b.ObservedGeneration &&
		slices.EqualFunc(slices.SortedFunc(slices.Values(a.Conditions), byType), slices.SortedFunc(slices.Values(b.Conditions), byType), same)
}
