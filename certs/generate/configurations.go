package generate

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
)

// injectedByOthers begins the annotations by which cert-manager's cainjector writes caBundle.
const injectedByOthers = "cert-manager.io/inject-"

// configurations returns empty objects for Stayput's webhook configurations.
func configurations() []client.Object {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	return []client.Object{
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: named(inplace.WebhookConfigurations)},
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: named(inplace.WebhookConfigurations)},
	}
}

// bundlesOf returns the caBundle of each webhook of a configuration.
func bundlesOf(object client.Object) [][]byte {
	var all [][]byte
	switch configuration := object.(type) {
	case *admissionv1.MutatingWebhookConfiguration:
		for _, webhook := range configuration.Webhooks {
			all = append(all, webhook.ClientConfig.CABundle)
		}
	case *admissionv1.ValidatingWebhookConfiguration:
		for _, webhook := range configuration.Webhooks {
			all = append(all, webhook.ClientConfig.CABundle)
		}
	}
	return all
}

// inBoth returns which of the certificates are in the bundle, too. Before the first bundle there are none to compare with.
func inBoth(certificates map[string]bool, bundle []byte) map[string]bool {
	both := map[string]bool{}
	for _, certificate := range certificatesIn(bundle) {
		if certificates == nil || certificates[string(certificate.Raw)] {
			both[string(certificate.Raw)] = true
		}
	}
	return both
}

// foreignTo returns the certificates in any caBundle that are none of these CAs.
func foreignTo(authorities []authority, all []client.Object) map[string]bool {
	found := map[string]bool{}
	for _, object := range all {
		for _, bundle := range bundlesOf(object) {
			for _, certificate := range foreignIn(bundle, authorities) {
				found[string(certificate.Raw)] = true
			}
		}
	}
	return found
}
