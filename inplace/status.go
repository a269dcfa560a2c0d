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

// patchStatus writes the status while the native controller is denied before it does: by its own formula, so that both
// always write the same. That all is done is left to it.
func (v *view) patchStatus() {
	if v.target == nil && !v.paused() {
		return // it creates the target and writes the status next
	}
	status := v.nativeStatus()
	if v.Announces(status) {
		return
	}
	v.awaitDeadline(status)
	operations := statusOperations(v.Deployment.Status, status)
	switch left := v.statusCanWait(status); {
	case len(operations) == 0:
	case left > 0:
		v.putOff(putOffStatus, left)
	default:
		v.step(PatchStatus{Deployment: v.Deployment, Status: status, Operations: guarded(v.Deployment, operations...)})
	}
}

// statusCanWait is how long the status can wait to be told together with what comes next. Counts can, for a moment that nobody notices. What
// people and tools act on is told at once, but not while pods change their ReplicaSet: the sums are of two moments then.
func (v *view) statusCanWait(status appsv1.DeploymentStatus) time.Duration {
	switch {
	case sameForActing(v.Deployment.Status, status):
		return v.canWait(putOffStatus, statusBeat, v.Now)
	case !v.still() && status.ObservedGeneration == v.Deployment.Status.ObservedGeneration:
		return v.canWait(putOffStatus, beat, v.Now)
	}
	return 0
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

// nativeStatus is syncDeploymentStatus (pkg/controller/deployment/sync.go) while paused, syncRolloutStatus (progress.go)
// otherwise.
func (v *view) nativeStatus() appsv1.DeploymentStatus {
	status := v.counts()
	if v.paused() {
		return status
	}
	v.setProgress(&status)
	if failure := v.replicaFailure(); failure != nil {
		setCondition(&status, *failure)
	} else {
		removeCondition(&status, appsv1.DeploymentReplicaFailure)
	}
	return status
}

// counts is calculateStatus in sync.go: sums over all owned ReplicaSets.
func (v *view) counts() appsv1.DeploymentStatus {
	old := v.Deployment.Status
	status := appsv1.DeploymentStatus{ObservedGeneration: v.Deployment.Generation, CollisionCount: old.CollisionCount,
		Conditions: slices.Clone(old.Conditions), TerminatingReplicas: v.terminating()}
	for _, s := range v.sets {
		status.Replicas += s.rs.Status.Replicas
		status.ReadyReplicas += s.rs.Status.ReadyReplicas
		status.AvailableReplicas += s.rs.Status.AvailableReplicas
	}
	if v.target != nil {
		status.UpdatedReplicas = v.target.rs.Status.Replicas
	}
	status.UnavailableReplicas = max(0, int32(v.sum())-status.AvailableReplicas)
	available := newCondition(appsv1.DeploymentAvailable, corev1.ConditionFalse, reasonMinimumMissing,
		"Deployment does not have minimum availability.", v.Now)
	if status.AvailableReplicas >= desired(v.Deployment)-v.Deployment.maxUnavailable() {
		available = newCondition(appsv1.DeploymentAvailable, corev1.ConditionTrue, reasonMinimumAvailable,
			"Deployment has minimum availability.", v.Now)
	}
	setCondition(&status, available)
	return status
}

// terminating is GetTerminatingReplicaCountForReplicaSets. The field exists only where its feature gate is on, which shows in
// what has been written before.
func (v *view) terminating() *int32 {
	known := v.Deployment.Status.TerminatingReplicas != nil
	sum := int32(0)
	for _, s := range v.sets {
		switch terminating := s.rs.Status.TerminatingReplicas; {
		case terminating != nil:
			known = true
			sum += *terminating
		case s.rs.Status.ObservedGeneration > 0:
			return nil
		}
	}
	if !known {
		return nil
	}
	return &sum
}

// setProgress is the estimate of progress in syncRolloutStatus, except for completion.
func (v *view) setProgress(status *appsv1.DeploymentStatus) {
	current := deploymentCondition(v.Deployment.Status, appsv1.DeploymentProgressing)
	switch {
	case !v.hasDeadline():
		removeCondition(status, appsv1.DeploymentProgressing)
	case current != nil && current.Reason == reasonComplete && status.Replicas == status.UpdatedReplicas, v.complete(*status):
		// over, or over in a moment
	case progressed(v.Deployment.Status, *status):
		updated := newCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, reasonUpdated, v.subject()+" is progressing.", v.Now)
		if current != nil && current.Status == corev1.ConditionTrue {
			updated.LastTransitionTime = current.LastTransitionTime
		}
		removeCondition(status, appsv1.DeploymentProgressing)
		setCondition(status, updated)
	case v.target != nil && current != nil && current.Reason == reasonComplete:
		// Natively the condition stops speaking of the last update when the new ReplicaSet is created (getNewReplicaSet in sync.go) or
		// gets its first pod. Our status can go before the former, and the latter may be long in coming; a condition that is complete
		// never times out.
		setCondition(status, newCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, reasonFound,
			fmt.Sprintf("Found new replica set %q", v.target.rs.Name), v.Now))
	case v.timedOut(current):
		setCondition(status, newCondition(appsv1.DeploymentProgressing, corev1.ConditionFalse, reasonTimedOut, v.timeoutMessage(), v.Now))
	}
}

// timeoutMessage is the native message, with what the update waits for. The native controller leaves it as it is, since it writes a
// condition only when status or reason change.
func (v *view) timeoutMessage() string {
	message := v.subject() + " has timed out progressing."
	if v.waiting != "" {
		message += " It is " + v.waiting + "."
	}
	return message
}

func (v *view) subject() string {
	if v.target == nil {
		return fmt.Sprintf("Deployment %q", v.Deployment.Name)
	}
	return fmt.Sprintf("ReplicaSet %q", v.target.rs.Name)
}

// complete is DeploymentComplete.
func (v *view) complete(status appsv1.DeploymentStatus) bool {
	want := desired(v.Deployment)
	return status.UpdatedReplicas == want && status.Replicas == want && status.AvailableReplicas == want &&
		status.ObservedGeneration >= v.Deployment.Generation
}

// Announces tells whether people would take the status for the end of the rollout: rollout_status.go in
// kubectl/pkg/polymorphichelpers. The native DeploymentComplete is stricter, but with borrowed pods even that can hold in a moment
// in which a pod is on its way between two ReplicaSets, where nobody counts it.
func (r Rollout) Announces(status appsv1.DeploymentStatus) bool {
	return status.ObservedGeneration >= r.Deployment.Generation && status.UpdatedReplicas >= desired(r.Deployment) &&
		status.Replicas <= status.UpdatedReplicas && status.AvailableReplicas >= status.UpdatedReplicas
}

// progressed is DeploymentProgressing.
func progressed(old, status appsv1.DeploymentStatus) bool {
	return status.UpdatedReplicas > old.UpdatedReplicas ||
		status.Replicas-status.UpdatedReplicas < old.Replicas-old.UpdatedReplicas ||
		status.ReadyReplicas > old.ReadyReplicas || status.AvailableReplicas > old.AvailableReplicas
}

// timedOut is DeploymentTimedOut.
func (v *view) timedOut(progressing *appsv1.DeploymentCondition) bool {
	if progressing == nil || progressing.Reason == reasonComplete {
		return false
	}
	return progressing.Reason == reasonTimedOut || progressing.LastUpdateTime.Add(v.deadline()).Before(v.Now)
}

// hasDeadline is HasProgressDeadline.
func (v *view) hasDeadline() bool {
	seconds := v.Deployment.Spec.ProgressDeadlineSeconds
	return seconds != nil && *seconds != math.MaxInt32
}

func (v *view) deadline() time.Duration {
	return time.Duration(*v.Deployment.Spec.ProgressDeadlineSeconds) * time.Second
}

// awaitDeadline looks again when the deadline has passed: requeueStuckDeployment.
func (v *view) awaitDeadline(status appsv1.DeploymentStatus) {
	progressing := deploymentCondition(status, appsv1.DeploymentProgressing)
	if !v.hasDeadline() || v.paused() || progressing == nil || progressing.Reason == reasonTimedOut || progressing.Reason == reasonComplete {
		return
	}
	_, wait := since(progressing.LastUpdateTime.Time, v.deadline(), v.Now)
	v.again(wait + time.Second)
}

// replicaFailure is getReplicaFailures in progress.go: that of the target rather than that of another; nil if there is none.
func (v *view) replicaFailure() *appsv1.DeploymentCondition {
	sets := v.sets
	if v.target != nil {
		sets = append([]*replicaSet{v.target}, v.sets...)
	}
	for _, s := range sets {
		for _, c := range s.rs.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure {
				return &appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: c.Status, Reason: c.Reason,
					Message: c.Message, LastUpdateTime: c.LastTransitionTime, LastTransitionTime: c.LastTransitionTime}
			}
		}
	}
	return nil
}

func newCondition(kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string, now time.Time) appsv1.DeploymentCondition {
	at := metav1.NewTime(now)
	return appsv1.DeploymentCondition{Type: kind, Status: status, Reason: reason, Message: message, LastUpdateTime: at, LastTransitionTime: at}
}

func deploymentCondition(status appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for _, c := range status.Conditions {
		if c.Type == kind {
			return &c
		}
	}
	return nil
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
