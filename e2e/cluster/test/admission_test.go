package test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	admission "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestCertificateAndInjection(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	createCertificate(t, namespace, "web")
	configuration := webhook(namespace, "/allow", "none-"+namespace, "configmaps")
	create(t, configuration)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	eventually(t, "cainjector fills the caBundle", func(ctx context.Context) (bool, string) {
		if err := errors.Join(fetch(ctx, secret), fetch(ctx, configuration)); err != nil {
			return false, err.Error()
		}
		bundle := configuration.Webhooks[0].ClientConfig.CABundle
		return len(bundle) > 0 && bytes.Equal(bundle, secret.Data["ca.crt"]), fmt.Sprintf("%d bytes", len(bundle))
	})
}

func TestWebhookInAPodIsCalled(t *testing.T) {
	t.Parallel()
	server, subject := newNamespace(t, nil), newNamespace(t, nil)
	serveWebhook(t, server)
	create(t, webhook(server, "/deny", subject, "configmaps"))
	eventually(t, "the webhook denies", func(ctx context.Context) (bool, string) {
		err := dryRunCreate(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: subject, Name: "any"}})
		return err != nil && strings.Contains(err.Error(), "version v1 denies CREATE configmaps by"), fmt.Sprint(err)
	})
	if err := dryRunCreate(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: server, Name: "any"}}); err != nil {
		t.Errorf("another namespace is concerned, too: %v", err)
	}
}

// A webhook sees the user names of requests, so the test asks a webhook that logs them. The test waits until the webhook is in force before
// it gives the controllers anything to do.
func TestControllersHaveUserNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	server, subject := newNamespace(t, nil), newNamespace(t, nil)
	recorder := serveWebhook(t, server)
	create(t, webhook(server, "/allow", subject, "pods", "replicasets"))
	eventually(t, "the webhook records requests", func(ctx context.Context) (bool, string) {
		if err := dryRunCreate(ctx, pod(subject, "any", podSpec("v1"))); err != nil {
			return false, err.Error()
		}
		log, err := tryKubectl(ctx, "-n", server, "logs", recorder.Name)
		return err == nil && strings.Contains(log, "allows CREATE pods by"), fmt.Sprintf("%q, error %v", log, err)
	})

	create(t, deployment(subject, "web", 1, podSpec("v1")), daemonSet(subject, "agent", podSpec("v1")))
	for _, done := range []string{
		"CREATE replicasets by system:serviceaccount:kube-system:deployment-controller",
		"CREATE pods by system:serviceaccount:kube-system:replicaset-controller",
		"CREATE pods by system:serviceaccount:kube-system:daemon-set-controller",
	} {
		awaitLog(t, recorder, "version v1 allows "+done)
	}
}

func dryRunCreate(ctx context.Context, object client.Object) error {
	return cluster.Create(ctx, object, client.DryRunAll)
}

// createCertificate gives the Service name a self-signed certificate, in a Secret of that name. cert-manager has been seen to issue it
// twice, when its caches were old.
func createCertificate(t *testing.T, namespace, name string) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	certificate := &certmanager.Certificate{ObjectMeta: meta, Spec: certmanager.CertificateSpec{
		SecretName: name,
		DNSNames:   []string{name + "." + namespace + ".svc"},
		IssuerRef:  cmmeta.IssuerReference{Name: name},
	}}
	create(t, &certmanager.Issuer{ObjectMeta: meta, Spec: certmanager.IssuerSpec{
		IssuerConfig: certmanager.IssuerConfig{SelfSigned: &certmanager.SelfSignedIssuer{}},
	}}, certificate)
	eventually(t, "certificate "+name+" is Ready", func(ctx context.Context) (bool, string) {
		if err := fetch(ctx, certificate); err != nil {
			return false, err.Error()
		}
		for _, condition := range certificate.Status.Conditions {
			if condition.Type == certmanager.CertificateConditionReady && condition.Status == cmmeta.ConditionTrue {
				return true, ""
			}
		}
		return false, fmt.Sprintf("%+v", certificate.Status)
	})
}

// serveWebhook runs the test application as the webhook server behind the Service web.
func serveWebhook(t *testing.T, namespace string) *corev1.Pod {
	t.Helper()
	createCertificate(t, namespace, "web")
	spec := podSpec("v1", "TLS_DIR", "/tls")
	spec.Volumes = []corev1.Volume{{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "web"}}}}
	spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "tls", MountPath: "/tls"}}
	spec.Containers[0].ReadinessProbe.HTTPGet.Scheme = corev1.URISchemeHTTPS
	server := pod(namespace, "web", spec)
	create(t, server, service(namespace, "web", 443))
	awaitPod(t, server)
	return server
}

// webhook returns a configuration for the creation of resources in the namespace subject. It calls path of the Service web in the namespace
// server.
func webhook(server, path, subject string, resources ...string) *admission.ValidatingWebhookConfiguration {
	fail, none, timeout := admission.Fail, admission.SideEffectClassNone, int32(10)
	return &admission.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{
			Name:        subject,
			Annotations: map[string]string{"cert-manager.io/inject-ca-from": server + "/web"},
		},
		Webhooks: []admission.ValidatingWebhook{{
			Name: "review.test.stayput.dev",
			ClientConfig: admission.WebhookClientConfig{
				Service: &admission.ServiceReference{Namespace: server, Name: "web", Path: &path},
			},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: subject}},
			Rules:                   []admission.RuleWithOperations{rule(resources)},
			FailurePolicy:           &fail,
			SideEffects:             &none,
			TimeoutSeconds:          &timeout,
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

func rule(resources []string) admission.RuleWithOperations {
	return admission.RuleWithOperations{
		Operations: []admission.OperationType{admission.Create},
		Rule:       admission.Rule{APIGroups: []string{"", "apps"}, APIVersions: []string{"v1"}, Resources: resources},
	}
}
