package check

import "strings"

// Deployment is the name of the managers' Deployment in manifests.
const Deployment = "stayput"

// Policies are the names of the ValidatingAdmissionPolicies in manifests.
var Policies = []string{"stayput-namespaces", "stayput-workloads", "stayput-settings", "stayput-priority",
	"stayput-auxiliary", "stayput-marks", "stayput-auxiliary-names", "stayput-names",
	"stayput-own-namespaces", "stayput-own-pre-pull-pods", "stayput-own-pods", "stayput-own-ready", "stayput-own-resizes",
	"stayput-own-replicasets", "stayput-own-scaling", "stayput-own-revisions", "stayput-own-status"}

// hookNames are the webhooks of both configurations in manifests.
var hookNames = []string{mutating + "edits.stayput.dev", mutating + "new-replicasets.stayput.dev",
	mutating + "kubelet-reports.stayput.dev", validating + "edits.stayput.dev", validating + "in-place-only.stayput.dev",
	validating + "in-place-only-statefulsets.stayput.dev", validating + "in-place-only-statefulset.stayput.dev",
	validating + "replicasets.stayput.dev", validating + "throttled-replicasets.stayput.dev", validating + "completions.stayput.dev",
	validating + "revisions.stayput.dev", validating + "new-pods.stayput.dev", validating + "pods.stayput.dev",
	validating + "throttled-pods.stayput.dev"}

const mutating, validating = "mutating webhook ", "validating webhook "

// nativeControllers are the service accounts by which the webhooks know the native controllers.
var nativeControllers = []string{"deployment-controller", "replicaset-controller", "daemon-set-controller", "statefulset-controller"}

// rule has rights of the managers' service account: in the whole cluster, or for the object of that name in Stayput's own namespace. The
// name "*" means any object there.
type rule struct{ verbs, group, resources, own string }

// rules are those of manifests/base/rbac.yaml.
var rules = []rule{
	{"get list watch", "", "namespaces nodes pods", ""},
	{"patch", "", "pods pods/resize pods/status", ""},
	{"create delete", "", "pods", ""},
	{"list watch", "", "services", ""},
	{"list", "", "resourcequotas", ""},
	{"get", "", "persistentvolumeclaims", ""},
	{"get list watch", "apps", "deployments replicasets daemonsets statefulsets controllerrevisions", ""},
	{"patch", "apps", "deployments/status replicasets controllerrevisions", ""},
	{"create", "apps", "replicasets", ""},
	{"update", "apps", "deployments/finalizers replicasets/finalizers daemonsets/finalizers statefulsets/finalizers", ""},
	{"list watch", "discovery.k8s.io", "endpointslices", ""},
	{"list watch", "policy", "poddisruptionbudgets", ""},
	{"list", "autoscaling", "horizontalpodautoscalers", ""},
	{"create patch", "events.k8s.io", "events", ""},
	{"create", "coordination.k8s.io", "leases", "*"},
	{"get list watch update", "coordination.k8s.io", "leases", "stayput"},
	{"get list watch update", "", "configmaps", "stayput-fallbacks"},
}

// needed returns the rights one by one.
func needed() (all []rule) {
	for _, each := range rules {
		for resource := range strings.FieldsSeq(each.resources) {
			for verb := range strings.FieldsSeq(each.verbs) {
				all = append(all, rule{verb, each.group, resource, each.own})
			}
		}
	}
	return all
}
