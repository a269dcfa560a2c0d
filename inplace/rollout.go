package inplace

import (
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// The codes of the reasons for which a whole update goes native, next to those of Compare.
const (
	CodeMode            = "Mode"           // the workload is not, or no longer, updated in place
	CodeDeleting        = "Deleting"       // the workload is being deleted
	CodeReleased        = "Released"       // the update was given back before
	CodeStrategy        = "Strategy"       // Recreate with several replicas, OnDelete, maxSurge of a DaemonSet
	CodeMaxUnavailable  = "MaxUnavailable" // no pod may be missed
	CodeRevisionGone    = "RevisionGone"   // nobody knows the template a pod of a DaemonSet was made from
	CodeHousekeeping    = "Housekeeping"   // the native controller would delete the pod anyway
	CodeRewrittenImage  = "RewrittenImage" // a pod's image is not the one of its template
	CodeCannotCreate    = "CannotCreate"   // the target is missing and must not be written from our types
	CodeUnderWay        = "UnderWay"       // the native controller is at it
	CodeBypassed        = "Bypassed"       // the native controller's writes are not held: it is at it, too
	CodeUnbalanced      = "Unbalanced"     // a defect: the replicas that Stayput would write do not add up, and so are not written
	CodeTooLarge        = "TooLarge"       // what belongs to the workload is too large to be read
	CodeNotAdmitted     = "NotAdmitted"    // a policy refuses new pods
	CodeRefused         = "Refused"        // a policy refused a patch
	CodeInjected        = "Injected"       // admission gives new pods what running ones have not, or the other way round
	CodeFailing         = "Failing"        // writes have failed for too long
	CodeUntended        = "Untended"       // the leader has not looked after it lately
	CodeUninstalled     = "Uninstalled"    // Stayput is leaving
	labelTemplateHash   = appsv1.DefaultDeploymentUniqueLabelKey
	recreateMaxReplicas = 1
)

// Rollout is one Deployment with everything an update of it depends on. No object may be older than what the caller wrote itself:
// a step is guarded by the version of its own object only, and depends on several.
type Rollout struct {
	Deployment *Deployment
	// ReplicaSets are those the Deployment controls.
	ReplicaSets []*ReplicaSet
	// Pods are those the ReplicaSets control, terminating ones too.
	Pods []*corev1.Pod
	// Nodes are those the pods are on, as far as they are known.
	Nodes []*corev1.Node
	Pull  Pulling
	// Rehearsal is asked for by a Plan that needs one and has none.
	Rehearsal Rehearsal
	Mode      Mode
	Settings  Settings
	Rules     Rules
	Now       time.Time
	// Recorded is the hash of the template whose update was given back on record, empty if none was: see RecordRelease.
	Recorded string
	// Unread is why some ReplicaSets or pods are there only in outline; empty if none are.
	Unread string
	// Endpoints are those of the pods whose gates are closed, with the time since when they have been seen to be out. Nobody needs
	// them but the one who takes the steps of a Plan.
	Endpoints Endpoints
	// Ahead: as Endpoints, only for the one who takes the steps.
	Ahead Ahead
	// Beats: as Ahead. Without any, nil, nothing is put off.
	Beats Beats
}

// Verdict is whether Stayput makes the update.
type Verdict struct {
	// Held: Stayput is the only scaler and the native controllers' writes are held.
	Held bool
	// Target is the revision, a ReplicaSet or a ControllerRevision, whose pods all pods are to become; nil while nobody has created it.
	Target metav1.Object
	// Reasons why the update is native. None, if not Held: there is nothing to update. A DaemonSet's may be Held with reasons:
	// some of its pods come in place, and the others natively after them.
	Reasons Reasons
}

// TargetOf is the revision as the Target of a Verdict: an interface with a nil pointer in it would not be nil.
func TargetOf[T any, P interface {
	*T
	metav1.Object
}](revision P) metav1.Object {
	if revision == nil {
		return nil
	}
	return revision
}

// Target returns the oldest owned ReplicaSet with the Deployment's template, the one the Deployment controller will choose:
// FindNewReplicaSet in pkg/controller/deployment/util/deployment_util.go. Nil if there is none.
func (r Rollout) Target() *ReplicaSet {
	for _, rs := range r.oldestFirst() {
		if SameTemplate(rs.Spec.Template, r.Deployment.Spec.Template) {
			return rs
		}
	}
	return nil
}

// oldestFirst is ReplicaSetsByCreationTimestamp of pkg/controller/controller_utils.go.
func (r Rollout) oldestFirst() []*ReplicaSet {
	return slices.SortedFunc(slices.Values(r.ReplicaSets), func(a, b *ReplicaSet) int {
		if byAge := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); byAge != 0 {
			return byAge
		}
		return strings.Compare(a.Name, b.Name)
	})
}

// Sources returns the owned ReplicaSets, the target aside, that have or want pods; oldest first.
func (r Rollout) Sources() []*ReplicaSet { return r.sources(r.Target()) }

func (r Rollout) sources(target *ReplicaSet) []*ReplicaSet {
	var sources []*ReplicaSet
	for _, rs := range r.oldestFirst() {
		if rs != target && (inUse(rs) || r.hasLivePod(rs)) {
			sources = append(sources, rs)
		}
	}
	return sources
}

// inUse tells whether the ReplicaSet wants pods, or its controller knows any of it.
func inUse(rs *ReplicaSet) bool { return replicas(rs) > 0 || rs.Status.Replicas > 0 }

// observed: its controller knows its replicas.
func observed(rs *ReplicaSet) bool { return rs.Status.ObservedGeneration >= rs.Generation }

func (r Rollout) hasLivePod(rs *ReplicaSet) bool {
	return slices.ContainsFunc(r.Pods, func(pod *corev1.Pod) bool { return live(pod) && metav1.IsControlledBy(pod, rs) })
}

// Verdict needs no Pods: webhooks ask it of every native write.
func (r Rollout) Verdict() Verdict {
	if r.untouched() {
		return r.Mode.verdict()
	}
	target := r.Target()
	sources := r.sources(target)
	marked := func(rs *ReplicaSet) bool { return Settling(rs) || Borrowed(rs) }
	if len(sources) == 0 && !slices.ContainsFunc(r.ReplicaSets, marked) {
		return Verdict{Target: TargetOf(target)}
	}
	reasons := r.nativeReasons(target, sources)
	return Verdict{Held: len(reasons) == 0, Target: TargetOf(target), Reasons: reasons}
}

func (r Rollout) nativeReasons(target *ReplicaSet, sources []*ReplicaSet) Reasons {
	if reason := r.workloadReason(target); reason != nil {
		return Reasons{*reason}
	}
	to := r.Deployment.Spec.Template
	if target != nil {
		to = target.Spec.Template
	}
	var reasons Reasons
	for _, source := range sources {
		if reasons = reasons.and(Compare(source.Spec.Template, to, r.Rules).Reasons...); reasons.full() {
			break
		}
	}
	return reasons
}

// workloadReason is what stands against an update in place whatever the templates are; nil if nothing does.
func (r Rollout) workloadReason(target *ReplicaSet) *Reason {
	d := r.Deployment
	recreate := d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType
	switch {
	case !r.Mode.Manages():
		return r.Mode.reason()
	case d.DeletionTimestamp != nil:
		return &Reason{Code: CodeDeleting, Message: "the Deployment is being deleted"}
	case r.Unread != "":
		return &Reason{Code: CodeTooLarge, Message: r.Unread}
	case target != nil && Released(target), slices.ContainsFunc(r.ReplicaSets, r.standIns()), r.onRecord():
		return &Reason{Code: CodeReleased, Message: "the update was given back to the Deployment controller"}
	case recreate && desired(d) > recreateMaxReplicas:
		return &Reason{Code: CodeStrategy, Path: "/spec/strategy/type", Message: "strategy Recreate promises that two versions never run at once"}
	case recreate && target == nil:
		_, reason := newReplicaSet(d, r.ReplicaSets)
		return reason
	case explicitZero(d) && !r.Settings.Borrow:
		return &Reason{Code: CodeMaxUnavailable, Path: "/spec/strategy/rollingUpdate/maxUnavailable", Message: "maxUnavailable 0 means that no pod may be missed"}
	}
	return nil
}

// Settling tells whether a revision is marked as part of an update under way. The pods of such a ReplicaSet are being moved, so
// that its controller's deletions are held.
func Settling[R metav1.Object](revision R) bool {
	value := revision.GetLabels()[LabelSettling]
	return value != "" && !strings.HasSuffix(value, scaling)
}

// scaling is the suffix of LabelSettling while replicas are brought in order in the middle of an update: the pods that are too many
// may be deleted, and it still shows that the update is ours.
const scaling = ".scaling"

// Released tells whether the update to that revision was given back to the native controller; a ReplicaSet may also stand in for one that
// does not exist yet.
func Released[R metav1.Object](revision R) bool { return revision.GetLabels()[LabelReleased] != "" }

// standsFor is what comes in LabelReleased before the hash of a target that did not exist when its update was given back.
const standsFor = "."

// standIns tells of ReplicaSets whether they say, in the target's stead, that this very update was given back.
func (r Rollout) standIns() func(*ReplicaSet) bool {
	wanted := sync.OnceValue(r.targetHash)
	return func(rs *ReplicaSet) bool {
		_, hash, stands := strings.Cut(rs.Labels[LabelReleased], standsFor)
		return stands && hash == wanted()
	}
}

// onRecord tells whether the record says that this very update was given back.
func (r Rollout) onRecord() bool { return r.Deployment.Spec.Template.onRecord(r.Recorded) }

func (r Rollout) targetHash() string { return r.Deployment.Spec.Template.hash() }

// desired returns spec.replicas of the Deployment, defaulted as the API server does.
func desired(d *Deployment) int32 { return ptr.Deref(d.Spec.Replicas, 1) }

// replicas returns spec.replicas of the ReplicaSet, defaulted as the API server does.
func replicas(rs *ReplicaSet) int32 { return ptr.Deref(rs.Spec.Replicas, 1) }
