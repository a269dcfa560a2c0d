package inplace

// Names of objects, labels and annotations that Stayput reads or writes. Marks on revisions are labels of ReplicaSets or
// ControllerRevisions. They are labels because `kubectl rollout undo` and the Deployment controller copy annotations between a Deployment
// and its ReplicaSets, but never labels (kubectl/pkg/polymorphichelpers/rollback.go). Writing one makes the native controller look at the
// workload again (updateReplicaSet in pkg/controller/deployment, updateHistory in pkg/controller/daemon).
//
// docs/reference/names.md has the first paragraph of each comment.
const (
	// LabelUpdating marks a ReplicaSet whose pods Stayput is moving; pod deletions of its controller are held. On a ControllerRevision it
	// marks the update revision of an update in progress. Its value is the time when the update started, in Unix seconds; with a suffix, the
	// ReplicaSet controller may delete pods for the moment.
	//
	// See revisions.Scaling for the suffix.
	LabelUpdating = "stayput.dev/updating"
	// LabelRenewed nudges the native controller and renews the leader's hold. The leader writes it on a revision every minute of an update,
	// and as long as the native controller has something left to do after the update fell back. Managers write it when they shut down. Its
	// value is the time, in Unix seconds; Stayput removes it when nothing is left to do.
	//
	// See revisions.HoldLasts for how long a renewal counts.
	LabelRenewed = "stayput.dev/renewed"
	// LabelReplicas says, on a ReplicaSet whose pods are being moved, how many replicas Stayput last gave it. Any other number of replicas
	// means that another client has scaled the ReplicaSet.
	//
	// See deployments/bypass.go for the consequences.
	LabelReplicas = "stayput.dev/replicas"
	// LabelBypassed says, on the update revision of a Deployment, when Stayput last found that another client had scaled the ReplicaSets
	// during the update, in Unix seconds.
	LabelBypassed = "stayput.dev/bypassed"
	// LabelCurrent says, on a revision, that pods had it when the update in progress began. A partition keeps only pods of such revisions.
	// Its value is that of `stayput.dev/updating`.
	//
	// See podstate.PartitionBudget.
	LabelCurrent = "stayput.dev/current"
	// LabelPrePull marks pre-pull pods, which only have their nodes pull new images before containers there stop. Its value is the
	// workload's UID.
	LabelPrePull = "stayput.dev/pre-pull"
	// LabelSurgeReplicas says, on a ReplicaSet, how many of its replicas are for surge pods. "0", on the update revision, says that there
	// was no room for surge pods, and that the update goes on without them.
	//
	// See deployments/surge.go.
	LabelSurgeReplicas = "stayput.dev/surge-replicas"
	// AnnotationDecision says on a workload what its last template edit does to the running pods, and ends with a hash of that template. After
	// an edit of which no manager was asked, the hash is another one than that of the template.
	//
	// Set by the mutating webhook.
	AnnotationDecision = "stayput.dev/decision"
	// AnnotationMove marks a pod that Stayput has patched in place. Its value is JSON: the revision to which the pod moved, and what its
	// containers were before, by which Stayput tells that they have restarted.
	//
	// See readiness.Move.
	AnnotationMove = "stayput.dev/move"
	// AnnotationRestarts says on a pod that its containers are about to restart without any other change, so that the kubelet first reads
	// the pod's volumes again. Its value is the time, in Unix seconds, and the hash of the revision for which they restart.
	//
	// See podstate/volumes.go.
	AnnotationRestarts = "stayput.dev/restarting"
	// AnnotationRestarted says on a pod what becomes of the last request of `stayput.dev/restart-containers`: `restarted`, `refused` or
	// `waiting`, the containers with the times at which they restarted, and why it was refused or waits.
	AnnotationRestarted = "stayput.dev/restarted"
	// AnnotationSurgePod marks a surge pod: a pod that exists only while others are updated.
	AnnotationSurgePod = "stayput.dev/surge-pod"
	// AnnotationNudged nudges the controller of a pod, where Stayput cannot write a revision. Its value is the time, in Unix seconds.
	AnnotationNudged = "stayput.dev/nudged"
	// Lease is the name of the leader's Lease in Stayput's own namespace.
	Lease = "stayput"
	// Fallbacks is the name of the ConfigMap in that namespace that has the persisted fallbacks: see revisions.Fallbacks.
	Fallbacks = "stayput-fallbacks"
	// WebhookConfigurations is the name of the mutating and of the validating webhook configuration.
	WebhookConfigurations = "stayput"
)

// Marks are Stayput's labels that revisions may have.
var Marks = []string{LabelUpdating, LabelRenewed, LabelSurgeReplicas, LabelReplicas, LabelBypassed, LabelCurrent}
