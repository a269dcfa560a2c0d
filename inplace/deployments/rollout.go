package deployments

import (
	"cmp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

const recreateMaxReplicas = 1

// Rollout is one Deployment with everything on which an update of it depends. No object may be older than the caller's own last write to
// it: a step is guarded by the version of its own object only, but depends on several objects.
type Rollout struct {
	Deployment *apps.Deployment
	// ReplicaSets are those that the Deployment controls.
	ReplicaSets []*apps.ReplicaSet
	// Seen is what was observed besides.
	Seen engine.Snapshot
}

// UpdateRevision returns the oldest owned ReplicaSet with the Deployment's template, which is the one that the Deployment controller will
// choose: FindNewReplicaSet in pkg/controller/deployment/util/deployment_util.go. Nil if there is none.
func (r Rollout) UpdateRevision() *apps.ReplicaSet {
	for _, rs := range r.OldestFirst() {
		if apps.SameTemplate(rs.Spec.Template, r.Deployment.Spec.Template) {
			return rs
		}
	}
	return nil
}

// OldestFirst is ReplicaSetsByCreationTimestamp of pkg/controller/controller_utils.go.
func (r Rollout) OldestFirst() []*apps.ReplicaSet {
	return slices.SortedFunc(slices.Values(r.ReplicaSets), func(a, b *apps.ReplicaSet) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
}

// oldReplicaSets returns the owned ReplicaSets other than the new one that have or want pods; oldest first.
func (r Rollout) oldReplicaSets(newRS *apps.ReplicaSet) []*apps.ReplicaSet {
	var oldReplicaSets []*apps.ReplicaSet
	for _, rs := range r.OldestFirst() {
		live := func(pod *corev1.Pod) bool { return readiness.Live(pod) && metav1.IsControlledBy(pod, rs) }
		if rs != newRS && (apps.InUse(rs) || slices.ContainsFunc(r.Seen.Pods, live)) {
			oldReplicaSets = append(oldReplicaSets, rs)
		}
	}
	return oldReplicaSets
}

// Decision returns whether Stayput makes the update in place. It needs no Pods: webhooks call it for every native write.
func (r Rollout) Decision() steps.Decision {
	if engine.Untouched(&r) {
		return steps.NativeDecision(r.Seen.Mode)
	}
	newRS := r.UpdateRevision()
	oldReplicaSets := r.oldReplicaSets(newRS)
	marked := func(rs *apps.ReplicaSet) bool { return revisions.Updating(rs) || Surging(rs) }
	if len(oldReplicaSets) == 0 && !slices.ContainsFunc(r.ReplicaSets, marked) {
		return steps.Decision{UpdateRevision: steps.RevisionOf(newRS)}
	}
	reasons := r.nativeReasons(newRS, oldReplicaSets)
	waits := r.Seen.Awaits(r.workload(), reasons) && !nativeRolloutBegun(r.ReplicaSets, newRS)
	return steps.Decision{Held: len(reasons) == 0 || waits, UpdateRevision: steps.RevisionOf(newRS), Reasons: reasons, Waits: waits}
}

// Deleting reports whether the Deployment is being deleted during an update in place; with --cascade=orphan, for example, so that its
// pods stay. The Deployment controller then writes the status and does nothing else (syncDeployment in
// pkg/controller/deployment/deployment_controller.go). If it creates or scales a ReplicaSet nevertheless, it has decided on an older
// cache, and that write would begin a rollout that no controller finishes. So such writes are held as before. The leader need not renew
// this hold: it delays nothing that a user wants, and ends with the Deployment. A Deployment that a finalizer keeps is left alone natively,
// too. Meanwhile the leader puts pods back and removes its marks. Where the pods are to go, the garbage collector deletes them, and no
// webhook is asked about its deletions.
func (r Rollout) Deleting() bool {
	if r.Deployment.DeletionTimestamp == nil {
		return false
	}
	before := *r.Deployment
	before.DeletionTimestamp, r.Deployment = nil, &before
	return r.Decision().Held
}

func (r Rollout) nativeReasons(newRS *apps.ReplicaSet, oldReplicaSets []*apps.ReplicaSet) inplace.Reasons {
	if reason := r.workloadReason(newRS); reason != nil {
		return inplace.Reasons{*reason}
	}
	to := r.Deployment.Spec.Template
	if newRS != nil {
		to = newRS.Spec.Template
	}
	var reasons inplace.Reasons
	for _, oldReplicaSet := range oldReplicaSets {
		change := edit.Compare(oldReplicaSet.Spec.Template, to, r.Seen.Rules)
		if reasons = reasons.And(change.Reasons...).And(change.LostTolerations...); reasons.Full() {
			break
		}
	}
	return reasons
}

// workloadReason returns what prevents an update in place whatever the templates are; nil if nothing does.
func (r Rollout) workloadReason(newRS *apps.ReplicaSet) *inplace.Reason {
	if reason := cmp.Or(r.Seen.Unmanaged(r.workload()), r.Seen.WhyFellBack(r.workload())); reason != nil {
		return reason
	}
	d := r.Deployment
	recreate := d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType
	switch {
	case recreate && apps.Desired(d) > recreateMaxReplicas:
		return &inplace.Reason{Code: inplace.CodeStrategy, Path: "/spec/strategy/type",
			Message: "strategy Recreate promises that two versions never run at once"}
	case recreate && newRS == nil:
		_, reason := NewReplicaSet(d, r.ReplicaSets)
		return reason
	case apps.ExplicitZero(d) && !r.Seen.Settings.Surge.Allowed():
		return &inplace.Reason{Code: inplace.CodeMaxUnavailable, Path: "/spec/strategy/rollingUpdate/maxUnavailable",
			Message: "maxUnavailable 0 means that no pod may be unavailable, and annotation stayput.dev/surge is never"}
	}
	return nil
}

// TemplateHash returns the hash by which a persisted fallback names the update: see revisions.Fallback.
func (r Rollout) TemplateHash() string { return r.Deployment.Spec.Template.Hash() }
