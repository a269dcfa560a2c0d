package check

import (
	"context"
	"strings"

	cmapi "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
)

const (
	kubeSystem = "kube-system"
	leaseName  = inplace.Lease
)

// managerPods selects the managers' pods. managerSelector is the same, as a user writes it.
var managerPods = client.MatchingLabels{"app.kubernetes.io/name": "stayput", "app.kubernetes.io/component": "manager"}

const managerSelector = "app.kubernetes.io/name=stayput,app.kubernetes.io/component=manager"

// images reads the nodes. It also asks, in a dry run, whether the API server accepts a pod that mounts an image: with the feature gate
// switched off it does not.
func (r Reader) images(ctx context.Context, f *Facts) error {
	var list corev1.NodeList
	if err := r.List(ctx, &list); err != nil {
		return err
	}
	f.Nodes = list.Items
	if !r.DryRuns {
		return nil
	}
	namespace := metav1.NamespaceDefault
	if f.Manager != nil {
		namespace = r.Namespace
	}
	if err := r.Create(ctx, mounting(namespace), client.DryRunAll); apierrors.IsInvalid(err) && strings.Contains(err.Error(), "spec.volumes") {
		f.VolumesRefused = err.Error()
	}
	return nil // any other refusal is about this pod, and says nothing about pods of workloads
}

// mounting returns a pod that mounts an image, and that Pod Security admits everywhere.
func mounting(namespace string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "stayput-check-"},
		Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](65532),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Volumes: []corev1.Volume{{Name: "image", VolumeSource: corev1.VolumeSource{
				Image: &corev1.ImageVolumeSource{Reference: "registry.example/image:v1"}}}},
			Containers: []corev1.Container{{Name: "check", Image: "registry.example/image:v1",
				VolumeMounts: []corev1.VolumeMount{{Name: "image", MountPath: "/image"}},
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}},
		},
	}
}

// foreign reads the webhooks of others and the Services that they call. Policies of others have been read with Stayput's own.
func (r Reader) foreign(ctx context.Context, f *Facts) error {
	var mutating admissionv1.MutatingWebhookConfigurationList
	if err := r.List(ctx, &mutating); err != nil {
		return err
	}
	var validating admissionv1.ValidatingWebhookConfigurationList
	if err := r.List(ctx, &validating); err != nil {
		return err
	}
	for _, configuration := range mutating.Items {
		for _, each := range configuration.Webhooks {
			f.addHook(configuration.Name, admissionv1.ValidatingWebhook{Name: each.Name, ClientConfig: each.ClientConfig, Rules: each.Rules,
				FailurePolicy: each.FailurePolicy, NamespaceSelector: each.NamespaceSelector})
		}
	}
	for _, configuration := range validating.Items {
		for _, each := range configuration.Webhooks {
			f.addHook(configuration.Name, each)
		}
	}
	f.Backends = map[string]bool{}
	for _, hook := range f.Hooks {
		service := serviceOf(hook)
		if _, known := f.Backends[service]; known || service == "" || !fails(hook) || !meetsUpdates(hook) {
			continue
		}
		ready, err := r.hasEndpoint(ctx, *hook.ClientConfig.Service)
		if err != nil {
			return err
		}
		f.Backends[service] = ready
	}
	return nil
}

func (f *Facts) addHook(configuration string, hook admissionv1.ValidatingWebhook) {
	if configuration != inplace.WebhookConfigurations {
		f.Hooks = append(f.Hooks, ForeignHook{configuration, hook})
	}
}

// hasEndpoint reports whether the Service has a ready endpoint.
func (r Reader) hasEndpoint(ctx context.Context, service admissionv1.ServiceReference) (bool, error) {
	var slices discoveryv1.EndpointSliceList
	err := r.List(ctx, &slices, client.InNamespace(service.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name})
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			if ptr.Deref(endpoint.Conditions.Ready, true) {
				return true, err
			}
		}
	}
	return false, err
}

// certificates reads what cert-manager says of the certificates in Stayput's namespace.
func (r Reader) certificates(ctx context.Context, f *Facts) error {
	var certificates cmapi.CertificateList
	err := r.List(ctx, &certificates, client.InNamespace(r.Namespace))
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return err
	}
	f.CertManager, f.Certificates = true, certificates.Items
	var requests cmapi.CertificateRequestList
	if err := r.List(ctx, &requests, client.InNamespace(r.Namespace)); err != nil {
		return err
	}
	f.Requests = requests.Items
	var issuers cmapi.IssuerList
	if err := r.List(ctx, &issuers, client.InNamespace(r.Namespace)); err != nil {
		return err
	}
	f.Issuers = issuers.Items
	for _, each := range f.Certificates {
		var issuer cmapi.ClusterIssuer
		if each.Spec.IssuerRef.Kind != cmapi.ClusterIssuerKind {
			continue
		}
		found, err := r.find(ctx, "", each.Spec.IssuerRef.Name, &issuer)
		if err != nil {
			return err
		}
		if found {
			f.ClusterIssuers = append(f.ClusterIssuers, issuer)
		}
	}
	return nil
}

// misplaced looks for workloads whose label has no effect, or is not a mode. It reads their metadata only.
func (r Reader) misplaced(ctx context.Context, f *Facts) error {
	labelled := map[string]bool{}
	for _, namespace := range f.Namespaces {
		labelled[namespace.Name] = namespace.Labels[inplace.LabelUpdate] != ""
	}
	for _, kind := range []string{"Deployment", "DaemonSet", "StatefulSet"} {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(appsGroup.WithKind(kind + "List"))
		if err := r.List(ctx, &list, client.HasLabels{inplace.LabelUpdate}); err != nil {
			return err
		}
		for _, each := range list.Items {
			value := each.Labels[inplace.LabelUpdate]
			useless := !labelled[each.Namespace] && inplace.Mode(value) != inplace.ModeRecreate
			if useless || !inplace.WorkloadModes.Has(value) {
				f.Misplaced = append(f.Misplaced, Workload{kind, each.Namespace, each.Name, value})
			}
		}
	}
	return nil
}
