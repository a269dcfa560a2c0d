package deployments

import (
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/native"
	"github.com/stayput/stayput/inplace/prepull"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/rehearsal"
	"github.com/stayput/stayput/inplace/replicas"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/serving"
	"github.com/stayput/stayput/inplace/steps"
)

const (
	recreateMaxReplicas = 1
)

// Rollout is one Deployment with everything an update of it depends on. No object may be older than what the caller wrote itself:
// a step is guarded by the version of its own object only, and depends on several.
type Rollout struct {
	Deployment *apps.Deployment
	// ReplicaSets are those the Deployment controls.
	ReplicaSets []*apps.ReplicaSet
	// Pods are those the ReplicaSets control, terminating ones too.
	Pods []*corev1.Pod
	// Nodes are those the pods are on, as far as they are known.
	Nodes []*corev1.Node
	Pull  prepull.Pulling
	// Rehearsal is asked for by a Plan that needs one and has none.
	Rehearsal rehearsal.Rehearsal
	// Own is a rehearsal of a revision to which pods that are half-way go back. With Unknown and no Target nobody can be asked.
	Own      rehearsal.Rehearsal
	Mode     inplace.Mode
	Settings inplace.Settings
	Rules    inplace.Rules
	Now      time.Time
	// Recorded is the hash of the template whose update was given back on record, empty if none was: see steps.RecordRelease.
	Recorded string
	// Unread is why some ReplicaSets or pods are there only in outline; empty if none are.
	Unread string
	// Endpoints are those of the pods whose gates are closed, with the time since when they have been seen to be out. Nobody needs
	// them but the one who takes the steps of a Plan.
	Endpoints serving.Endpoints
	// Ahead: as Endpoints, only for the one who takes the steps.
	Ahead readiness.Ahead
	// Beats: as Ahead. Without any, nil, nothing is put off.
	Beats steps.Beats
}

// Target returns the oldest owned ReplicaSet with the Deployment's template, the one the Deployment controller will choose:
// FindNewReplicaSet in pkg/controller/deployment/util/deployment_util.go. Nil if there is none.
func (r Rollout) Target() *apps.ReplicaSet {
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
		if byAge := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); byAge != 0 {
			return byAge
		}
		return strings.Compare(a.Name, b.Name)
	})
}

// Sources returns the owned ReplicaSets, the target aside, that have or want pods; oldest first.
func (r Rollout) Sources() []*apps.ReplicaSet { return r.sources(r.Target()) }

func (r Rollout) sources(target *apps.ReplicaSet) []*apps.ReplicaSet {
	var sources []*apps.ReplicaSet
	for _, rs := range r.OldestFirst() {
		if rs != target && (apps.InUse(rs) || r.hasLivePod(rs)) {
			sources = append(sources, rs)
		}
	}
	return sources
}

func (r Rollout) hasLivePod(rs *apps.ReplicaSet) bool {
	return slices.ContainsFunc(r.Pods, func(pod *corev1.Pod) bool { return readiness.Live(pod) && metav1.IsControlledBy(pod, rs) })
}

// Verdict needs no Pods: webhooks ask it of every native write.
func (r Rollout) Verdict() steps.Verdict {
	if r.untouched() {
		return steps.NativeVerdict(r.Mode)
	}
	target := r.Target()
	sources := r.sources(target)
	marked := func(rs *apps.ReplicaSet) bool { return revisions.Settling(rs) || replicas.Borrowed(rs) }
	if len(sources) == 0 && !slices.ContainsFunc(r.ReplicaSets, marked) {
		return steps.Verdict{Target: steps.TargetOf(target)}
	}
	reasons := r.nativeReasons(target, sources)
	return steps.Verdict{Held: len(reasons) == 0, Target: steps.TargetOf(target), Reasons: reasons}
}

// Deleting tells whether the Deployment is being deleted in the middle of an update in place: with --cascade=orphan, say, so that its pods stay.
// Its controller then reports the status and does nothing else (syncDeployment in pkg/controller/deployment/deployment_controller.go). What it
// creates or scales all the same it has decided on an older cache, and it would be the beginning of a rollout that nobody ends. So that is held as
// before. Nobody has to tend such a hold: it keeps nothing back that anybody wants, and ends with the Deployment.
func (r Rollout) Deleting() bool {
	if r.Deployment.DeletionTimestamp == nil {
		return false
	}
	before := *r.Deployment
	before.DeletionTimestamp, r.Deployment = nil, &before
	return r.Verdict().Held
}

func (r Rollout) nativeReasons(target *apps.ReplicaSet, sources []*apps.ReplicaSet) inplace.Reasons {
	if reason := r.workloadReason(target); reason != nil {
		return inplace.Reasons{*reason}
	}
	to := r.Deployment.Spec.Template
	if target != nil {
		to = target.Spec.Template
	}
	var reasons inplace.Reasons
	for _, source := range sources {
		change := edit.Compare(source.Spec.Template, to, r.Rules)
		if reasons = reasons.And(change.Reasons...).And(change.Displaced...); reasons.Full() {
			break
		}
	}
	return reasons
}

// workloadReason is what stands against an update in place whatever the templates are; nil if nothing does.
func (r Rollout) workloadReason(target *apps.ReplicaSet) *inplace.Reason {
	d := r.Deployment
	recreate := d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType
	switch {
	case !r.Mode.Manages():
		return r.Mode.Reason()
	case d.DeletionTimestamp != nil:
		return &inplace.Reason{Code: inplace.CodeDeleting, Message: "the Deployment is being deleted"}
	case r.Unread != "":
		return &inplace.Reason{Code: inplace.CodeTooLarge, Message: r.Unread}
	case target != nil && revisions.Released(target), slices.ContainsFunc(r.ReplicaSets, r.standIns()), r.onRecord():
		return &inplace.Reason{Code: inplace.CodeReleased, Message: "the update was given back to the Deployment controller"}
	case recreate && apps.Desired(d) > recreateMaxReplicas:
		return &inplace.Reason{Code: inplace.CodeStrategy, Path: "/spec/strategy/type", Message: "strategy Recreate promises that two versions never run at once"}
	case recreate && target == nil:
		_, reason := native.NewReplicaSet(d, r.ReplicaSets)
		return reason
	case apps.ExplicitZero(d) && !r.Settings.Borrow:
		return &inplace.Reason{Code: inplace.CodeMaxUnavailable, Path: "/spec/strategy/rollingUpdate/maxUnavailable", Message: "maxUnavailable 0 means that no pod may be missed"}
	}
	return nil
}

// standIns tells of ReplicaSets whether they say, in the target's stead, that this very update was given back.
func (r Rollout) standIns() func(*apps.ReplicaSet) bool {
	wanted := sync.OnceValue(r.TargetHash)
	return func(rs *apps.ReplicaSet) bool {
		_, hash, stands := strings.Cut(rs.Labels[inplace.LabelReleased], revisions.StandsFor)
		return stands && hash == wanted()
	}
}

// onRecord tells whether the record says that this very update was given back.
func (r Rollout) onRecord() bool { return r.Deployment.Spec.Template.OnRecord(r.Recorded) }

// TargetHash is by what marks and records know the update again while there is no target: see revisions.StandsFor and revisions.Record.
func (r Rollout) TargetHash() string { return r.Deployment.Spec.Template.Hash() }
