package check

import "slices"

// These are names in manifests.
const (
	Deployment  = "stayput"                   // the managers
	partOf      = "app.kubernetes.io/part-of" // a label of all objects of Stayput
	application = "stayput"                   // the value of that label
	advice      = "stayput-auxiliary-names"   // the policy that warns; all others deny
)

// Policies are the names of the ValidatingAdmissionPolicies in manifests.
var Policies = []string{"stayput-namespaces", "stayput-workloads", "stayput-settings", "stayput-priority",
	"stayput-auxiliary", "stayput-marks", advice,
	"stayput-own-namespaces", "stayput-own-pre-pull-pods", "stayput-own-pods", "stayput-own-ready", "stayput-own-resizes",
	"stayput-own-replicasets", "stayput-own-scaling", "stayput-own-revisions", "stayput-own-status"}

// The webhooks of both configurations in manifests.
var (
	mutatingHooks   = []string{"edits.stayput.dev", "new-replicasets.stayput.dev", "kubelet-reports.stayput.dev"}
	validatingHooks = []string{"edits.stayput.dev", "in-place-only.stayput.dev",
		"in-place-only-statefulsets.stayput.dev", "in-place-only-statefulset.stayput.dev", "replicasets.stayput.dev",
		"throttled-replicasets.stayput.dev", "completions.stayput.dev", "revisions.stayput.dev", "new-pods.stayput.dev",
		"pods.stayput.dev", "throttled-pods.stayput.dev"}
)

// flowSchemas have the API server queue Stayput's requests with those of the native controllers.
var flowSchemas = []string{"stayput", "stayput-leader-election"}

// nativeControllers are the service accounts by which the webhooks know the native controllers.
var nativeControllers = []string{"deployment-controller", "replicaset-controller", "daemon-set-controller", "statefulset-controller"}

// right is what the managers' service account must be allowed.
type right struct {
	group, resource, subresource, verb string
	// own says that the right is needed in Stayput's own namespace only, and name, if set, on one object only.
	own  bool
	name string
}

// needed returns the rights of the managers' service account in manifests/base/rbac.yaml.
func needed() []right {
	return slices.Concat(
		cluster("", "namespaces", "", "get", "list", "watch"),
		cluster("", "nodes", "", "get", "list", "watch"),
		cluster("", "pods", "", "get", "list", "watch", "patch", "create", "delete"),
		cluster("", "pods", "resize", "patch"),
		cluster("", "pods", "status", "patch"),
		cluster("", "services", "", "list", "watch"),
		cluster("", "resourcequotas", "", "list"),
		cluster("", "persistentvolumeclaims", "", "get"),
		cluster("apps", "controllerrevisions", "", "get", "list", "watch", "patch"),
		cluster("apps", "daemonsets", "", "get", "list", "watch"),
		cluster("apps", "deployments", "", "get", "list", "watch"),
		cluster("apps", "deployments", "status", "patch"),
		cluster("apps", "replicasets", "", "get", "list", "watch", "create", "patch"),
		cluster("apps", "statefulsets", "", "get", "list", "watch"),
		cluster("apps", "daemonsets", "finalizers", "update"),
		cluster("apps", "deployments", "finalizers", "update"),
		cluster("apps", "replicasets", "finalizers", "update"),
		cluster("apps", "statefulsets", "finalizers", "update"),
		cluster("discovery.k8s.io", "endpointslices", "", "list", "watch"),
		cluster("policy", "poddisruptionbudgets", "", "list", "watch"),
		cluster("autoscaling", "horizontalpodautoscalers", "", "list"),
		cluster("events.k8s.io", "events", "", "create", "patch"),
		[]right{{"coordination.k8s.io", "leases", "", "create", true, ""}},
		updated("coordination.k8s.io", "leases", "stayput"),
		updated("", "configmaps", "stayput-fallbacks"),
	)
}

func cluster(group, resource, subresource string, verbs ...string) (all []right) {
	for _, verb := range verbs {
		all = append(all, right{group: group, resource: resource, subresource: subresource, verb: verb})
	}
	return all
}

// updated returns the rights to read and to update one object in Stayput's own namespace.
func updated(group, resource, name string) (all []right) {
	for _, verb := range []string{"get", "list", "watch", "update"} {
		all = append(all, right{group: group, resource: resource, verb: verb, own: true, name: name})
	}
	return all
}
