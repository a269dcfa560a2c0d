package inplace

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
)

// Reasons of Deployment conditions; pkg/controller/deployment/util/deployment_util.go. Kubectl and other tools know them.
const (
	reasonUpdated          = "ReplicaSetUpdated"
	reasonFound            = "FoundNewReplicaSet"
	reasonComplete         = "NewReplicaSetAvailable"
	reasonTimedOut         = "ProgressDeadlineExceeded"
	reasonMinimumAvailable = "MinimumReplicasAvailable"
	reasonMinimumMissing   = "MinimumReplicasUnavailable"
)

// formula is what the native controller works a Deployment's status out of.
type formula struct {
	deployment *Deployment
	// sets are all that it owns, target the one whose template is its own; nil while nobody has created it.
	sets   []*ReplicaSet
	target *ReplicaSet
	// waiting is for what nothing restarts, one clause; empty if for nothing.
	waiting string
	now     time.Time
}

// nativeStatus is syncDeploymentStatus (pkg/controller/deployment/sync.go) while paused, syncRolloutStatus (progress.go)
// otherwise.
func (f formula) nativeStatus() appsv1.DeploymentStatus {
	status := f.counts()
	if f.deployment.Spec.Paused {
		return status
	}
	f.setProgress(&status)
	if failure := f.replicaFailure(); failure != nil {
		setCondition(&status, *failure)
	} else {
		removeCondition(&status, appsv1.DeploymentReplicaFailure)
	}
	return status
}

// counts is calculateStatus in sync.go: sums over all owned ReplicaSets.
func (f formula) counts() appsv1.DeploymentStatus {
	old := f.deployment.Status
	status := appsv1.DeploymentStatus{ObservedGeneration: f.deployment.Generation, CollisionCount: old.CollisionCount,
		Conditions: slices.Clone(old.Conditions), TerminatingReplicas: f.terminating()}
	for _, s := range f.sets {
		status.Replicas += s.Status.Replicas
		status.ReadyReplicas += s.Status.ReadyReplicas
		status.AvailableReplicas += s.Status.AvailableReplicas
	}
	if f.target != nil {
		status.UpdatedReplicas = f.target.Status.Replicas
	}
	status.UnavailableReplicas = max(0, f.sum()-status.AvailableReplicas)
	available := newCondition(appsv1.DeploymentAvailable, corev1.ConditionFalse, reasonMinimumMissing,
		"Deployment does not have minimum availability.", f.now)
	if status.AvailableReplicas >= desired(f.deployment)-f.deployment.maxUnavailable() {
		available = newCondition(appsv1.DeploymentAvailable, corev1.ConditionTrue, reasonMinimumAvailable,
			"Deployment has minimum availability.", f.now)
	}
	setCondition(&status, available)
	return status
}

// terminating is GetTerminatingReplicaCountForReplicaSets. The field exists only where its feature gate is on, which shows in
// what has been written before.
func (f formula) terminating() *int32 {
	known := f.deployment.Status.TerminatingReplicas != nil
	sum := int32(0)
	for _, s := range f.sets {
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

// setProgress is the estimate of progress in syncRolloutStatus, except for completion.
func (f formula) setProgress(status *appsv1.DeploymentStatus) {
	current := deploymentCondition(f.deployment.Status, appsv1.DeploymentProgressing)
	switch {
	case !f.hasDeadline():
		removeCondition(status, appsv1.DeploymentProgressing)
	case current != nil && current.Reason == reasonComplete && status.Replicas == status.UpdatedReplicas, Complete(f.deployment, *status):
		// over, or over in a moment
	case progressed(f.deployment.Status, *status):
		updated := newCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, reasonUpdated, f.subject()+" is progressing.", f.now)
		if current != nil && current.Status == corev1.ConditionTrue {
			updated.LastTransitionTime = current.LastTransitionTime
		}
		removeCondition(status, appsv1.DeploymentProgressing)
		setCondition(status, updated)
	case f.target != nil && current != nil && current.Reason == reasonComplete:
		// Natively the condition stops speaking of the last update when the new ReplicaSet is created (getNewReplicaSet in sync.go) or
		// gets its first pod. Our status can go before the former, and the latter may be long in coming; a condition that is complete
		// never times out.
		setCondition(status, newCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, reasonFound,
			fmt.Sprintf("Found new replica set %q", f.target.Name), f.now))
	case f.timedOut(current):
		setCondition(status, newCondition(appsv1.DeploymentProgressing, corev1.ConditionFalse, reasonTimedOut, f.timeoutMessage(), f.now))
	}
}

// timeoutMessage is the native message, with what the update waits for. The native controller leaves it as it is, since it writes a
// condition only when status or reason change.
func (f formula) timeoutMessage() string {
	message := f.subject() + " has timed out progressing."
	if f.waiting != "" {
		message += " It is " + f.waiting + "."
	}
	return message
}

func (f formula) subject() string {
	if f.target == nil {
		return fmt.Sprintf("Deployment %q", f.deployment.Name)
	}
	return fmt.Sprintf("ReplicaSet %q", f.target.Name)
}

// Complete is DeploymentComplete: with that status the Deployment controller takes the rollout for done.
func Complete(d *Deployment, status appsv1.DeploymentStatus) bool {
	want := desired(d)
	return status.UpdatedReplicas == want && status.Replicas == want && status.AvailableReplicas == want &&
		status.ObservedGeneration >= d.Generation
}

// Overdue tells whether the Deployment's status says that the rollout has made no progress for too long.
func Overdue(d *Deployment) bool {
	progressing := deploymentCondition(d.Status, appsv1.DeploymentProgressing)
	return progressing != nil && progressing.Reason == reasonTimedOut
}

// progressed is DeploymentProgressing.
func progressed(old, status appsv1.DeploymentStatus) bool {
	return status.UpdatedReplicas > old.UpdatedReplicas ||
		status.Replicas-status.UpdatedReplicas < old.Replicas-old.UpdatedReplicas ||
		status.ReadyReplicas > old.ReadyReplicas || status.AvailableReplicas > old.AvailableReplicas
}

// timedOut is DeploymentTimedOut.
func (f formula) timedOut(progressing *appsv1.DeploymentCondition) bool {
	if progressing == nil || progressing.Reason == reasonComplete {
		return false
	}
	return progressing.Reason == reasonTimedOut || progressing.LastUpdateTime.Add(f.deadline()).Before(f.now)
}

// hasDeadline is HasProgressDeadline.
func (f formula) hasDeadline() bool {
	seconds := f.deployment.Spec.ProgressDeadlineSeconds
	return seconds != nil && *seconds != math.MaxInt32
}

func (f formula) deadline() time.Duration {
	return time.Duration(*f.deployment.Spec.ProgressDeadlineSeconds) * time.Second
}

// untilDeadline is when to look whether the deadline has passed, 0 if there is no need: requeueStuckDeployment.
func (f formula) untilDeadline(status appsv1.DeploymentStatus) time.Duration {
	progressing := deploymentCondition(status, appsv1.DeploymentProgressing)
	if !f.hasDeadline() || f.deployment.Spec.Paused || progressing == nil || progressing.Reason == reasonTimedOut || progressing.Reason == reasonComplete {
		return 0
	}
	_, wait := since(progressing.LastUpdateTime.Time, f.deadline(), f.now)
	return wait + time.Second
}

// replicaFailure is getReplicaFailures in progress.go: that of the target rather than that of another; nil if there is none.
func (f formula) replicaFailure() *appsv1.DeploymentCondition {
	sets := f.sets
	if f.target != nil {
		sets = append([]*ReplicaSet{f.target}, f.sets...)
	}
	for _, s := range sets {
		if c := failureOf(s); c != nil {
			return &appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: c.Status, Reason: c.Reason,
				Message: c.Message, LastUpdateTime: c.LastTransitionTime, LastTransitionTime: c.LastTransitionTime}
		}
	}
	return nil
}

func newCondition(kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string, now time.Time) appsv1.DeploymentCondition {
	at := metav1.NewTime(now)
	return appsv1.DeploymentCondition{Type: kind, Status: status, Reason: reason, Message: message, LastUpdateTime: at, LastTransitionTime: at}
}

// setCondition is SetDeploymentCondition: nothing happens unless status or reason change.
func setCondition(status *appsv1.DeploymentStatus, condition appsv1.DeploymentCondition) {
	current := deploymentCondition(*status, condition.Type)
	if current != nil && current.Status == condition.Status {
		if current.Reason == condition.Reason {
			return
		}
		condition.LastTransitionTime = current.LastTransitionTime
	}
	removeCondition(status, condition.Type)
	status.Conditions = append(status.Conditions, condition)
}

func removeCondition(status *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType) {
	status.Conditions = slices.DeleteFunc(slices.Clone(status.Conditions), func(c appsv1.DeploymentCondition) bool { return c.Type == kind })
}

// statusOperations names only the fields that change; those we do not know stay.
func statusOperations(old, status appsv1.DeploymentStatus) []jsonpatch.Operation {
	var operations []jsonpatch.Operation
	change := func(field string, from, to any) {
		if !equality.Semantic.DeepEqual(from, to) {
			operations = append(operations, jsonpatch.NewOperation("add", pointer("status", field), to))
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

// sum is GetReplicaCountForReplicaSets: what all controllers together work towards.
func (f formula) sum() int32 {
	sum := int32(0)
	for _, s := range f.sets {
		sum += replicas(s)
	}
	return sum
}

// sameForActing tells whether statuses differ only in counts, and in times.
func sameForActing(a, b appsv1.DeploymentStatus) bool {
	same := func(a, b appsv1.DeploymentCondition) bool {
		return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason
	}
	byType := func(a, b appsv1.DeploymentCondition) int { return strings.Compare(string(a.Type), string(b.Type)) }
	return a.ObservedGeneration == b.ObservedGeneration &&
		slices.EqualFunc(slices.SortedFunc(slices.Values(a.Conditions), byType), slices.SortedFunc(slices.Values(b.Conditions), byType), same)
}
