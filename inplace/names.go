package inplace

// Names of objects, labels and annotations that Stayput reads or writes. Marks on revisions are labels of ReplicaSets or
// ControllerRevisions. They are labels because `kubectl rollout undo` and the Deployment controller copy annotations between a Deployment
// and its ReplicaSets, but never labels (kubectl/pkg/polymorphichelpers/rollback.go). Writing one makes the native controller look at the
// workload again (updateReplicaSet in pkg/controller/deployment, updateHistory in pkg/controller/daemon).
//
// docs/reference/names.md has the first paragraph of each comment.
const (
	// LabelUpdating marks a ReplicaSet whose pods Stayput is moving, and holds the deletions of its controller. On a ControllerRevision it
	// marks the update revision. Its value is when the update started, in Unix seconds; with a suffix, the ReplicaSet controller may delete
	// pods for the moment.
	//
	// See revisions.Scaling for the suffix.
	LabelUpdating = "stayput.dev/updating"
	// LabelRenewed renews the leader's hold, and makes the native controller look again. The leader rewrites it every minute, during an
	// update and until a fallback is complete, and managers do when they shut down. Its value is the time, in Unix seconds.
	//
	// See revisions.HoldLasts for how long a renewal counts.
	LabelRenewed = "stayput.dev/renewed"
	// LabelReplicas is how many replicas Stayput last gave a ReplicaSet whose pods are being moved. Any other number means that another
	// client has scaled it.
	//
	// See deployments/bypass.go for the consequences.
	LabelReplicas = "stayput.dev/replicas"
	// LabelBypassed is when Stayput last found that another client had scaled the ReplicaSets of a Deployment during its update, in Unix
	// seconds.
	LabelBypassed = "stayput.dev/bypassed"
	// LabelCurrent marks a revision that pods had when the update in progress began. A partition keeps only pods of such revisions. Its
	// value is that of `stayput.dev/updating`.
	//
	// See podstate.PartitionBudget.
	LabelCurrent = "stayput.dev/current"
	// LabelPrePull marks pre-pull pods, which only have their nodes pull new images. Its value is the workload's UID.
	LabelPrePull = "stayput.dev/pre-pull"
	// LabelSurgeReplicas is how many replicas of a ReplicaSet are for surge pods. "0" on the update revision means that there was no room
	// for surge pods, and that the update goes on without them.
	//
	// See deployments/surge.go.
	LabelSurgeReplicas = "stayput.dev/surge-replicas"
	// AnnotationDecision says on a workload what its last template edit does to the running pods.
	//
	// Set by the mutating webhook.
	AnnotationDecision = "stayput.dev/decision"
	// AnnotationMove marks a pod that Stayput has patched in place. Its value is JSON: the revision to which the pod moved, and what its
	// containers were before, by which Stayput tells that they have restarted.
	//
	// See readiness.Move.
	AnnotationMove = "stayput.dev/move"
	// AnnotationRestarts marks a pod whose containers are about to restart without any other change, so that the kubelet first reads its
	// volumes again. Its value is the time, in Unix seconds, and the hash of the revision.
	//
	// See podstate/volumes.go.
	AnnotationRestarts = "stayput.dev/restarting"
	// AnnotationRestarted says what becomes of a request of `stayput.dev/restart-containers`: `restarted`, `refused` or `waiting`, with the
	// times at which containers restarted, and why it was refused or waits.
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
