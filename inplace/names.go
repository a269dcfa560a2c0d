package inplace

import (
	corev1 "k8s.io/api/core/v1"
)

// Names Stayput reads or writes. Marks are labels on the objects that hold a workload's revisions, ReplicaSets or
// ControllerRevisions: `kubectl rollout undo` and the Deployment controller copy annotations between a Deployment and its
// ReplicaSets, never labels (kubectl/pkg/polymorphichelpers/rollback.go), and writing one wakes the native controller
// (updateReplicaSet in pkg/controller/deployment, updateHistory in pkg/controller/daemon).
//
// docs/reference.md has the first paragraph of each.
const (
	// LabelUpdating marks a ReplicaSet whose pods Stayput is moving: its controller's pod deletions are held. On a
	// ControllerRevision it marks the target of an update under way.
	// Its value is the time the update started, in Unix seconds; with a suffix, deletions pass for the moment.
	//
	// See revisions.Scaling for the suffix.
	LabelUpdating = "stayput.dev/updating"
	// LabelFallback marks a target revision whose update was given back to the native controller. Its value is the time
	// of the last touch, in Unix seconds: writing it is what wakes that controller. With a hash behind it, it is about a target that
	// was not there yet.
	//
	// See revisions.StandsFor for the hash.
	LabelFallback = "stayput.dev/fallback"
	// LabelRenewed is written on a revision to wake the native controller: every minute of an update, which is also the sign that the leader
	// tends it, when the last manager may be going, and, for that of DaemonSets, when gates no longer keep a deletion back.
	// Its value is the time, in Unix seconds; it is taken off when nothing is under way.
	//
	// See revisions.HoldLasts for what the sign is good for.
	LabelRenewed = "stayput.dev/renewed"
	// LabelReplicas says, on a ReplicaSet whose pods are being moved, how many replicas Stayput gave it last. If it has others, somebody else
	// scales.
	//
	// See deployments/slip.go for what follows.
	LabelReplicas = "stayput.dev/replicas"
	// LabelBypassed says, on a target, when somebody else was last found to have scaled in the middle of the update, in Unix seconds.
	LabelBypassed = "stayput.dev/bypassed"
	// LabelCurrent says, on a revision, that pods had it when the update under way began: only there a partition keeps pods. Its value is that of
	// `stayput.dev/updating`.
	//
	// See podstate.Room.
	LabelCurrent = "stayput.dev/current"
	// LabelPrePull marks the pods that have nodes pull new images before containers stop. Its value is the workload's UID.
	LabelPrePull = "stayput.dev/pre-pull"
	// LabelSurgeReplicas says, on a target, how many of its replicas are borrowed, "0" that the update goes on without.
	//
	// See deployments/borrow.go.
	LabelSurgeReplicas = "stayput.dev/surge-replicas"
	// AnnotationDecision records on a workload what its last template edit does.
	//
	// Set by the mutating webhook.
	AnnotationDecision = "stayput.dev/decision"
	// AnnotationMove marks a pod that was patched in place: the revision it became one of, and by what it can be told that its containers have
	// restarted, as JSON.
	//
	// See readiness.Move.
	AnnotationMove = "stayput.dev/move"
	// AnnotationRestarts says on a pod that its containers are about to restart as they are, so that its kubelet reads its volumes anew before: the
	// time, in Unix seconds, and the revision it is for.
	//
	// See member/announce.go.
	AnnotationRestarts = "stayput.dev/restarting"
	// AnnotationSurgePod marks a pod that exists only while others are updated.
	AnnotationSurgePod = "stayput.dev/surge-pod"
	// AnnotationNudged wakes a pod's controller where a revision cannot be written; the value is that of LabelWoken.
	AnnotationNudged = "stayput.dev/nudged"
	// ConditionServing is the readiness gate of pods under a managed workload.
	ConditionServing corev1.PodConditionType = "stayput.dev/serving"
	// Lease names the leader's Lease in Stayput's own namespace.
	Lease = "stayput"
	// Fallbacks names the ConfigMap there that has on record which updates were given back: see revisions.Records.
	Fallbacks = "stayput-fallbacks"
)

// Marks are the labels of ours that revisions may have.
var Marks = []string{LabelUpdating, LabelFallback, LabelRenewed, LabelSurgeReplicas, LabelReplicas, LabelBypassed, LabelCurrent}
