package check

import (
	"crypto/x509"
	"time"

	cmapi "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
)

// Facts are what was read from a cluster. A pointer is nil where the object does not exist.
type Facts struct {
	// Namespace is Stayput's own.
	Namespace string
	Now       time.Time
	// Unread says which topics could not be read, and why.
	Unread map[Topic]error

	ClusterFacts
	InstallationFacts
}

// ClusterFacts are those that need no installation.
type ClusterFacts struct {
	// Version is that of the API server.
	Version string
	Nodes   []corev1.Node
	// VolumesRefused is what the API server says of a pod that mounts an image. It is empty if it accepts the pod, or was not asked.
	VolumesRefused string
	// Accounts are the service accounts of native controllers that exist.
	Accounts []string
	// ControllerManagers are the pods of kube-controller-manager, where it runs in pods.
	ControllerManagers []corev1.Pod
	Namespaces         []corev1.Namespace
	// Misplaced are workloads whose label stayput.dev/update has no effect, or is not a mode.
	Misplaced []Workload
	// Hooks are all webhooks of others, and Bindings what policies of others are bound.
	Hooks    []ForeignHook
	Bindings []string
	// Backends are the Services that webhooks of others call, by namespace/name: whether each has a ready endpoint.
	Backends map[string]bool
}

// InstallationFacts are those of an installed Stayput.
type InstallationFacts struct {
	Manager *appsv1.Deployment
	Pods    []corev1.Pod
	Lease   *coordinationv1.Lease
	// Denied are the rights that the managers' service account needs and does not have.
	Denied []string

	Mutating   *admissionv1.MutatingWebhookConfiguration
	Validating *admissionv1.ValidatingWebhookConfiguration
	Service    *corev1.Service
	Endpoints  bool // one is ready
	Answers    []Answer
	Served     []Served
	Write      DryRun
	// Bypassed are events of native writes that were to be held.
	Bypassed       []string
	PolicyNames    []string
	PolicyBindings []admissionv1.ValidatingAdmissionPolicyBinding
	// Schemas are the names of the FlowSchemas that exist.
	Schemas []string
	// Fallbacks reports whether the ConfigMap for persisted fallbacks exists.
	Fallbacks bool

	CertificateFacts
}

// CertificateFacts are what cert-manager says.
type CertificateFacts struct {
	// CertManager reports whether the cluster serves cert-manager's API.
	CertManager  bool
	Certificates []cmapi.Certificate
	Requests     []cmapi.CertificateRequest
	// Issuers are those of Stayput's namespace and the ClusterIssuers.
	Issuers        []cmapi.Issuer
	ClusterIssuers []cmapi.ClusterIssuer
}

// Workload is a Deployment, DaemonSet or StatefulSet with the label stayput.dev/update.
type Workload struct{ Kind, Namespace, Name, Label string }

// ForeignHook is a webhook that is not Stayput's.
type ForeignHook struct {
	Configuration string
	admissionv1.ValidatingWebhook
}

// Answer is what came back when the API server itself called a webhook. The error is nil if it was what a working manager answers.
type Answer struct {
	Hook string
	Err  error
}

// Served is the certificate that managers showed to a direct call of a webhook.
type Served struct {
	Hook  string
	Chain []*x509.Certificate
	Err   error
}

// DryRun is a write in a labelled namespace that must pass through a webhook.
type DryRun struct {
	// Namespace is where it was tried; empty if nowhere.
	Namespace string
	// Answered reports whether the webhook changed the write as it must.
	Answered bool
	Err      error
}
