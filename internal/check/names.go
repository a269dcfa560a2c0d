package check

import (
	"strings"

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

const deploymentController = "deployment-controller"

// nativeControllers returns the names of the service accounts by which the webhooks know the native controllers.
func nativeControllers() []string {
	names := []string{deploymentController}
	for _, kind := range observe.Kinds {
		names = append(names, strings.TrimPrefix(kind.PodsBy, inplace.NativeController("")))
	}
	return names
}
