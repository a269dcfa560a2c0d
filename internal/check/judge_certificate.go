package check

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"

	cmapi "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
)

// judgeCertificate follows the certificate from the issuer to the API server: is it issued, does the API server trust it, is it valid?
func judgeCertificate(f Facts, v *verdict) string {
	if !f.installed() {
		return f.judgeCertManager(v)
	}
	for i := range f.Certificates {
		f.judgeIssuance(v, &f.Certificates[i])
	}
	f.judgeInjection(v)
	if len(v.findings) > 0 {
		return "" // that the API server does not trust the certificate follows
	}
	until := f.judgeTrust(v)
	if until.IsZero() {
		return "the webhook configurations have a CA. Whether the certificate is signed by it, the managers' own check says: helm test"
	}
	return "valid until " + until.UTC().Format(time.RFC3339) + ", and signed by what the webhook configurations trust"
}

// judgeCertManager asks, before an installation, where a certificate will come from.
func (f Facts) judgeCertManager(v *verdict) string {
	if !f.CertManager {
		v.less("this cluster does not have cert-manager, which issues the webhooks' certificate",
			"install cert-manager (https://cert-manager.io/docs/installation/), or set certificates.generate of the chart, "+
				"or give it a certificate of your own: certificates.secretName and certificates.caBundle")
	}
	return "cert-manager is there to issue it"
}

// judgeIssuance asks whether cert-manager has issued the certificate, and if not, why.
func (f Facts) judgeIssuance(v *verdict, certificate *cmapi.Certificate) {
	name := fmt.Sprintf("Certificate %s/%s", certificate.Namespace, certificate.Name)
	ready := certificateCondition(certificate, cmapi.CertificateConditionReady)
	level, problem := Error, name+" is not ready"
	switch expires := certificate.Status.NotAfter; {
	case expires != nil && f.Now.After(expires.Time):
		problem = fmt.Sprintf("%s expired at %s", name, expires.UTC().Format(time.RFC3339))
	case ready.Status == cmmeta.ConditionTrue:
		level, problem = Warning, name+" cannot be renewed"
	}
	why, remedy := f.whyNotIssued(certificate)
	switch {
	case why != "":
		v.add(level, problem+": "+why, remedy)
	case level == Error:
		v.add(level, problem+": "+cmp.Or(ready.Message, "cert-manager has not looked at it"),
			"see that cert-manager's controller runs: kubectl get pods -A -l app.kubernetes.io/name=cert-manager")
	}
}

// whyNotIssued returns what keeps the issuer from signing, now or at the next renewal.
func (f Facts) whyNotIssued(certificate *cmapi.Certificate) (why, remedy string) {
	// A request to an issuer that the Certificate no longer names says nothing.
	request := f.requestOf(certificate, func(of *cmapi.CertificateRequest) bool { return of.Spec.IssuerRef == certificate.Spec.IssuerRef })
	if request == nil {
		return f.whyIssuer(certificate)
	}
	retry := fmt.Sprintf("have it requested again: kubectl -n %s delete certificaterequest %s, or cmctl renew -n %s %s",
		request.Namespace, request.Name, certificate.Namespace, certificate.Name)
	if why, remedy = whyRefused(request); why != "" {
		return why, remedy + ", then " + retry
	}
	if why, remedy = f.whyIssuer(certificate); why != "" {
		return why, remedy
	}
	ready := requestCondition(request, cmapi.CertificateRequestConditionReady)
	approved := requestCondition(request, cmapi.CertificateRequestConditionApproved).Status == cmmeta.ConditionTrue
	switch {
	case ready.Reason == cmapi.CertificateRequestReasonFailed:
		return fmt.Sprintf("the issuer could not sign CertificateRequest %s: %s", request.Name, ready.Message),
			"correct the issuer, then " + retry
	case !approved && ready.Status != cmmeta.ConditionTrue:
		return fmt.Sprintf("CertificateRequest %s was not approved", request.Name),
			"start the approver: cert-manager's own, or the one that you have in its place"
	case ready.Reason == cmapi.CertificateRequestReasonPending:
		return ready.Message, "see what the issuer waits for: kubectl -n " + request.Namespace + " describe certificaterequest " + request.Name
	}
	return "", ""
}

// whyRefused returns why the request is never signed, whatever its issuer is; empty if it may be.
func whyRefused(request *cmapi.CertificateRequest) (why, remedy string) {
	denied := requestCondition(request, cmapi.CertificateRequestConditionDenied)
	invalid := requestCondition(request, cmapi.CertificateRequestConditionInvalidRequest)
	switch {
	case denied.Status == cmmeta.ConditionTrue:
		return fmt.Sprintf("CertificateRequest %s was denied by an approver: %s", request.Name, denied.Message),
			"let the approver's policy allow this certificate"
	case invalid.Status == cmmeta.ConditionTrue:
		return fmt.Sprintf("CertificateRequest %s is invalid: %s", request.Name, invalid.Message), "correct the Certificate"
	}
	return "", ""
}

// whyIssuer returns what is wrong with the issuer of the certificate. Issuers of other groups are not cert-manager's own, and are not read.
func (f Facts) whyIssuer(certificate *cmapi.Certificate) (why, remedy string) {
	ref := certificate.Spec.IssuerRef
	kind := cmp.Or(ref.Kind, cmapi.IssuerKind)
	if group := cmp.Or(ref.Group, cmapi.SchemeGroupVersion.Group); group != cmapi.SchemeGroupVersion.Group {
		return "", ""
	}
	conditions, found := f.issuer(kind, ref.Name)
	if !found {
		return fmt.Sprintf("issuer not found: there is no %s %s", kind, ref.Name),
			fmt.Sprintf("create %s %s, or name another issuer: certificates.issuer of the chart, or overlays/own-issuer", kind, ref.Name)
	}
	for _, condition := range conditions {
		if condition.Type == cmapi.IssuerConditionReady && condition.Status != cmmeta.ConditionTrue {
			return fmt.Sprintf("%s %s is not ready: %s", kind, ref.Name, condition.Message),
				fmt.Sprintf("correct %s %s", kind, ref.Name)
		}
	}
	return "", ""
}

func (f Facts) issuer(kind, name string) (conditions []cmapi.IssuerCondition, found bool) {
	for _, each := range f.Issuers {
		if kind == cmapi.IssuerKind && each.Name == name {
			return each.Status.Conditions, true
		}
	}
	for _, each := range f.ClusterIssuers {
		if kind == cmapi.ClusterIssuerKind && each.Name == name {
			return each.Status.Conditions, true
		}
	}
	return nil, false
}

// requestOf returns the newest request for the certificate that is as wanted; nil if there is none.
func (f Facts) requestOf(certificate *cmapi.Certificate, wanted func(*cmapi.CertificateRequest) bool) (newest *cmapi.CertificateRequest) {
	for i := range f.Requests {
		each := &f.Requests[i]
		if each.Annotations[cmapi.CertificateNameKey] != certificate.Name || !wanted(each) {
			continue
		}
		if newest == nil || newest.CreationTimestamp.Before(&each.CreationTimestamp) {
			newest = each
		}
	}
	return newest
}

// judgeInjection asks whether each webhook configuration has a CA. Without one the API server trusts no certificate.
func (f Facts) judgeInjection(v *verdict) {
	for _, hook := range f.hooks() {
		if hook.injected != "" && !f.has(hook.injected) {
			v.wrong(fmt.Sprintf("the configuration of %s takes its CA from Certificate %s, which does not exist", hook.Name, hook.injected), again)
			return
		}
		if len(hook.CABundle) > 0 {
			continue
		}
		switch {
		case hook.injected == "" && f.generates():
			v.wrong(fmt.Sprintf("%s has no caBundle: the managers have not written the CA that they made (--%s)", hook.Name, generateFlag),
				fmt.Sprintf("look at the managers' log: kubectl -n %s logs deployment/%s --all-pods", f.Namespace, Deployment))
		case hook.injected == "":
			v.wrong(fmt.Sprintf("%s has no caBundle, and its configuration no annotation %s: the API server trusts no manager",
				hook.Name, injectFrom), again+". With a certificate of your own, set certificates.caBundle")
		case len(v.findings) == 0:
			v.wrong(fmt.Sprintf("the CA has not been injected: %s has no caBundle", hook.Name),
				"see that cert-manager's cainjector runs: kubectl get pods -A -l app.kubernetes.io/name=cainjector. "+
					"The issuer must put its CA into ca.crt of the Secret: CA, Vault and Venafi do, ACME does not")
		}
		return
	}
}

// generateFlag is the managers' flag by which they make the certificate themselves.
const generateFlag = "generate-certificates"

// generates reports whether the managers make the certificate themselves.
func (f Facts) generates() bool {
	if f.Manager == nil {
		return false
	}
	value, set := f.flag(generateFlag)
	return set && value != "false"
}

// has reports whether the Certificate exists, by namespace/name. Certificates of other namespaces are not read.
func (f Facts) has(certificate string) bool {
	namespace, name, _ := strings.Cut(certificate, "/")
	return namespace != f.Namespace || f.Unread[Certificate] != nil ||
		slices.ContainsFunc(f.Certificates, func(each cmapi.Certificate) bool { return each.Name == name })
}

// judgeTrust verifies the certificate as API servers do, once for each webhook: each has a caBundle of its own. It returns until when the
// certificate is valid; the zero time if no certificate could be read.
func (f Facts) judgeTrust(v *verdict) (until time.Time) {
	for _, hook := range f.hooks() {
		chain := f.chainOf(hook)
		if len(chain) == 0 {
			continue
		}
		until = chain[0].NotAfter
		roots, between := x509.NewCertPool(), x509.NewCertPool()
		roots.AppendCertsFromPEM(hook.CABundle)
		for _, each := range chain[1:] {
			between.AddCert(each)
		}
		host, _ := hook.Address()
		_, err := chain[0].Verify(x509.VerifyOptions{DNSName: host, Roots: roots, Intermediates: between, CurrentTime: f.Now})
		if err == nil {
			continue
		}
		remedy := "set certificates.caBundle of the chart to the CA that has signed the certificate, or renew the certificate"
		if hook.injected != "" {
			remedy = "restart cert-manager's controller and cainjector; they renew the certificate and inject its CA"
		}
		v.wrong(fmt.Sprintf("the API server does not trust the certificate of %s, so updates are native: %v", hook.Name, err), remedy)
		return until
	}
	return until
}

// chainOf returns the certificate that managers show: the one that was seen, or else the one that cert-manager has issued into the Secret
// that they mount.
func (f Facts) chainOf(hook Hook) []*x509.Certificate {
	for _, each := range f.Served {
		if each.Hook == hook.Name && each.Err == nil {
			return each.Chain
		}
	}
	for i := range f.Certificates {
		certificate := &f.Certificates[i]
		if certificate.Spec.SecretName != f.secret() {
			continue
		}
		issued := func(of *cmapi.CertificateRequest) bool { return len(of.Status.Certificate) > 0 }
		if request := f.requestOf(certificate, issued); request != nil {
			chain, _ := cert.ParseCertsPEM(request.Status.Certificate) // without a certificate there is nothing to say about one
			return chain
		}
	}
	return nil
}

// secret returns the name of the Secret from which managers take their certificate.
func (f Facts) secret() string {
	if f.Manager == nil {
		return ""
	}
	return certificateIn(f.Manager.Spec.Template.Spec)
}

// certificateIn returns the name of the Secret with the certificate that the pod mounts.
func certificateIn(pod corev1.PodSpec) string {
	for _, volume := range pod.Volumes {
		if volume.Name == "certificate" && volume.Secret != nil {
			return volume.Secret.SecretName
		}
	}
	return ""
}

func certificateCondition(of *cmapi.Certificate, wanted cmapi.CertificateConditionType) cmapi.CertificateCondition {
	for _, each := range of.Status.Conditions {
		if each.Type == wanted {
			return each
		}
	}
	return cmapi.CertificateCondition{}
}

func requestCondition(of *cmapi.CertificateRequest, wanted cmapi.CertificateRequestConditionType) cmapi.CertificateRequestCondition {
	for _, each := range of.Status.Conditions {
		if each.Type == wanted {
			return each
		}
	}
	return cmapi.CertificateRequestCondition{}
}
