package manifests

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// decoded returns the objects of a kind in a file of manifests/base. A field that the type does not have is an error.
func decoded[T any](t *testing.T, file, kind string) []T {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("base", file))
	if err != nil {
		t.Fatal(err)
	}
	var found []T
	for _, document := range strings.Split(string(content), "\n---\n") {
		if !strings.Contains(document, "\nkind: "+kind+"\n") {
			continue
		}
		var object T
		if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		found = append(found, object)
	}
	return found
}

// TestCertificateServesTheWebhooks: cert-manager's own types know all fields, the certificate has the name by which the API server calls
// every webhook, its Secret is the one that the managers mount, and its issuers are there.
func TestCertificateServesTheWebhooks(t *testing.T) {
	certificates := decoded[certmanager.Certificate](t, "certificates.yaml", "Certificate")
	issuers := decoded[certmanager.Issuer](t, "issuer.yaml", "Issuer")
	authorities := decoded[certmanager.Certificate](t, "issuer.yaml", "Certificate")
	if len(certificates) != 1 || len(authorities) != 1 || len(issuers) != 2 {
		t.Fatalf("%d certificates, %d authorities, %d issuers", len(certificates), len(authorities), len(issuers))
	}
	serving := certificates[0].Spec
	for _, c := range calls(t) {
		service := c.ClientConfig.Service
		if host := service.Name + "." + service.Namespace + ".svc"; !slices.Contains(serving.DNSNames, host) {
			t.Errorf("webhook %s is called as %s, the certificate is for %q", c.Name, host, serving.DNSNames)
		}
	}
	if !slices.Contains(serving.Usages, certmanager.UsageServerAuth) {
		t.Errorf("usages are %q, without server auth", serving.Usages)
	}
	pod := decoded[appsv1.Deployment](t, "manager.yaml", "Deployment")[0].Spec.Template.Spec
	if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Secret != nil && v.Secret.SecretName == serving.SecretName }) {
		t.Errorf("the managers do not mount Secret %s", serving.SecretName)
	}
	for _, certificate := range append(certificates, authorities...) {
		if !slices.ContainsFunc(issuers, func(i certmanager.Issuer) bool { return i.Name == certificate.Spec.IssuerRef.Name }) {
			t.Errorf("Certificate %s has no issuer %s", certificate.Name, certificate.Spec.IssuerRef.Name)
		}
	}
}
