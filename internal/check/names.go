package check

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/internal/observe"
)

// Deployment is the name of the managers' Deployment in manifests.
const Deployment = "stayput"

// Policies are the names of the ValidatingAdmissionPolicies in manifests.
var Policies = []string{"stayput-namespaces", "stayput-workloads", "stayput-settings", "stayput-priority",
	"stayput-marks", "stayput-auxiliary-names", "stayput-names",
	"stayput-own-namespaces", "stayput-own-pre-pull-pods", "stayput-own-pods", "stayput-own-ready", "stayput-own-resizes",
	"stayput-own-replicasets", "stayput-own-scaling", "stayput-own-revisions", "stayput-own-status"}

// hookNames are the webhooks of both configurations in manifests.
var hookNames = []string{mutating + "edits.stayput.dev", mutating + "new-replicasets.stayput.dev",
	mutating + "kubelet-reports.stayput.dev", validating + "edits.stayput.dev", validating + "in-place-only.stayput.dev",
	validating + "in-place-only-deployments.stayput.dev", validating + "in-place-only-daemonsets.stayput.dev",
	validating + "in-place-only-statefulsets.stayput.dev",
	validating + "replicasets.stayput.dev", validating + "throttled-replicasets.stayput.dev", validating + "completions.stayput.dev",
	validating + "revisions.stayput.dev", validating + "new-pods.stayput.dev", validating + "pods.stayput.dev",
	validating + "moved-pods.stayput.dev", validating + "throttled-pods.stayput.dev"}

const mutating, validating = "mutating webhook ", "validating webhook "

// nativeControllers returns the service accounts by which the webhooks know the native controllers.
func nativeControllers() (accounts []types.NamespacedName) {
	users := []string{inplace.NativeController("deployment-controller")}
	for _, kind := range observe.Kinds {
		users = append(users, kind.PodsBy)
	}
	for _, user := range users {
		parts := strings.Split(user, ":") // system:serviceaccount:NAMESPACE:NAME
		accounts = append(accounts, types.NamespacedName{Namespace: parts[2], Name: parts[3]})
	}
	return accounts
}

// rule has rights of the managers' service account: in the whole cluster, or for the object of that name in Stayput's own namespace. The
// name "*" means any object there.
type rule struct{ verbs, group, resources, own string }

// rules are those of manifests/base/rbac.yaml that are the same whatever kinds there are.
var rules = []rule{
	{"get list watch", "", "namespaces nodes pods", ""},
	{"patch", "", "pods pods/resize pods/status", ""},
	{"create delete", "", "pods", ""},
	{"list watch", "", "services", ""},
	{"list", "", "resourcequotas", ""},
	{"get", "", "persistentvolumeclaims", ""},
	{"patch", "apps", "deployments/status replicasets controllerrevisions", ""},
	{"create", "apps", "replicasets", ""},
	{"list watch", "discovery.k8s.io", "endpointslices", ""},
	{"list watch", "policy", "poddisruptionbudgets", ""},
	{"list", "autoscaling", "horizontalpodautoscalers", ""},
	{"create patch", "events.k8s.io", "events", ""},
	{"create", "coordination.k8s.io", "leases", "*"},
	{"get list watch update", "coordination.k8s.io", "leases", "stayput"},
	{"list watch", "admissionregistration.k8s.io", "validatingwebhookconfigurations", "stayput"},
	{"get list watch update", "", "configmaps", "stayput-fallbacks"},
}

// needed returns the rights one by one.
func needed() (all []rule) {
	wanted := slices.Clone(rules)
	for _, of := range observe.Types() {
		resource := of.Resource()
		wanted = append(wanted, rule{"get list watch", resource.Group, resource.Resource, ""})
		if of.Name != "ControllerRevision" { // it has no pods
			wanted = append(wanted, rule{"update", resource.Group, resource.Resource + "/finalizers", ""})
		}
	}
	for _, each := range wanted {
		for resource := range strings.FieldsSeq(each.resources) {
			for verb := range strings.FieldsSeq(each.verbs) {
				all = append(all, rule{verb, each.group, resource, each.own})
			}
		}
	}
	return all
}
