package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/observe"
	"github.com/stayput/stayput/watchdog"
	admission "github.com/stayput/stayput/webhook"
)

func TestCheckSaysWhatIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		late := func(context.Context) (string, error) {
			if asked++; asked < 3 {
				return "", errors.New("not yet")
			}
			return "there", nil
		}
		never := func(context.Context) (string, error) { return "", errors.New("gone") }
		var out strings.Builder
		err := put(t.Context(), &out, checkPatience, []question{{"leader", late}, {"webhooks", never}})
		if want := "ok     leader: there\nwrong  webhooks: gone\n"; out.String() != want {
			t.Errorf("it says\n%s\nwant\n%s", out.String(), want)
		}
		if err == nil || !strings.Contains(err.Error(), "1 of 2") {
			t.Errorf("the error is %v", err)
		}
	})
}

// ownHost is the host for which the webhooks' certificate must be.
const ownHost = "stayput-webhook.own.svc"

// certificateFor returns a self-signed certificate, and its CA bundle.
func certificateFor(t *testing.T, host string, until time.Time) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotBefore: until.Add(-24 * time.Hour), NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, made, made, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// checked is a cluster as check finds it. In the cluster of the zero value, everything works.
type checked struct {
	host     string // of the certificate
	expired  bool
	noBundle bool
	otherCA  bool
	path     string // a suffix of the webhook's path; with it, no manager serves the path
	age      time.Duration
	unbound  string // a policy without a binding
	weakened string // a policy that warns and should deny
	noPolicy string // a policy that is missing
	firewall bool
	// clientAuth says which callers managers answer.
	clientAuth tls.ClientAuthType
	late       bool   // only kubelets set the condition Ready
	readyAt    string // the path of the webhook in the place of the mutating policies; empty if there is no such webhook
}

func (c checked) examine(t *testing.T) examination {
	t.Helper()
	until := time.Now().Add(time.Hour)
	if c.expired {
		until = time.Now().Add(-time.Hour)
	}
	certificate, bundle := certificateFor(t, c.host+ownHost, until)
	if c.otherCA {
		_, bundle = certificateFor(t, ownHost, until)
	}
	if c.noBundle {
		bundle = nil
	}
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(c.objects(t, bundle)...).Build()
	managers := serveManagers(t, cluster, certificate, c.clientAuth)
	return examination{Client: cluster, apiServer: c.proxy(t, managers), namespace: "own",
		dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if address != ownHost+":443" {
				t.Errorf("it calls %s", address)
			}
			return (&net.Dialer{}).DialContext(ctx, network, managers.Listener.Addr().String())
		}}
}

// serveManagers serves Stayput's own handlers.
func serveManagers(t *testing.T, cluster client.Reader, certificate tls.Certificate, callers tls.ClientAuthType) *httptest.Server {
	t.Helper()
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{})
	reader := observe.Reader{Reader: cluster, ExcludedNamespaces: []string{"own"}}
	admission.Register(server, admission.Handlers{Cached: reader, Live: reader, Watchdog: &watchdog.Watchdog{}})
	managers := httptest.NewUnstartedServer(server.WebhookMux())
	managers.Config.ErrorLog = nil
	managers.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13, ClientAuth: callers}
	managers.StartTLS()
	t.Cleanup(managers.Close)
	return managers
}

func (c checked) objects(t *testing.T, bundle []byte) []client.Object {
	t.Helper()
	path := "/mutate-workload" + c.path
	call := admissionv1.WebhookClientConfig{CABundle: bundle,
		Service: &admissionv1.ServiceReference{Name: "stayput-webhook", Namespace: "own", Path: &path}}
	now, holder := metav1.NewMicroTime(time.Now().Add(-c.age)), "manager"
	objects := []client.Object{
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: ownConfiguration},
			Webhooks: []admissionv1.MutatingWebhook{{Name: "edits", ClientConfig: call}}},
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: ownConfiguration},
			Webhooks: []admissionv1.ValidatingWebhook{{Name: "edits", ClientConfig: call}}},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: inplace.Lease},
			Spec: coordinationv1.LeaseSpec{RenewTime: &now, HolderIdentity: &holder}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "own"}},
	}
	if c.readyAt != "" {
		call.Service = &admissionv1.ServiceReference{Name: "stayput-webhook", Namespace: "own", Path: &c.readyAt}
		objects = append(objects, &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: readyRule},
			Webhooks: []admissionv1.MutatingWebhook{{Name: "ready", ClientConfig: call}}})
	} else if !c.late {
		objects = append(objects, &admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: readyRule}},
			&admissionv1.MutatingAdmissionPolicyBinding{
				ObjectMeta: metav1.ObjectMeta{Name: readyRule, Labels: map[string]string{"app.kubernetes.io/part-of": "stayput"}},
				Spec:       admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: readyRule}})
	}
	return append(objects, c.policies(t)...)
}

// policies returns the policies and bindings of the manifests, with the faults of c.
func (c checked) policies(t *testing.T) (objects []client.Object) {
	t.Helper()
	for _, document := range documentsIn(t, "../../manifests/base/*.yaml") {
		switch decode[metav1.TypeMeta](t, document).Kind {
		case "ValidatingAdmissionPolicy":
			if policy := decode[admissionv1.ValidatingAdmissionPolicy](t, document); policy.Name != c.noPolicy {
				objects = append(objects, &policy)
			}
		case "ValidatingAdmissionPolicyBinding":
			binding := decode[admissionv1.ValidatingAdmissionPolicyBinding](t, document)
			if binding.Spec.PolicyName == c.weakened {
				binding.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Warn}
			}
			if binding.Spec.PolicyName != c.unbound {
				objects = append(objects, &binding)
			}
		}
	}
	return objects
}

// proxy returns a client of an API server that passes requests on to the managers' Service, unless there is a firewall in between.
func (c checked) proxy(t *testing.T, managers *httptest.Server) rest.Interface {
	t.Helper()
	const prefix = "/api/v1/namespaces/own/services/https:stayput-webhook:webhook/proxy"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, is := strings.CutPrefix(r.URL.Path, prefix)
		if !is || c.firewall {
			http.Error(w, "error trying to reach service: dial tcp 10.0.0.1:10250: i/o timeout", http.StatusServiceUnavailable)
			return
		}
		passed, err := http.NewRequestWithContext(r.Context(), r.Method, managers.URL+path, r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		passed.Header = r.Header.Clone()
		insecure := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true} // as API servers proxy
		response, err := insecure.RoundTrip(passed)
		if err != nil {
			http.Error(w, "error trying to reach service: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		defer func() { _ = response.Body.Close() }()
		w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
		w.WriteHeader(response.StatusCode)
		if _, err := io.Copy(w, response.Body); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	apiServer, err := rest.RESTClientFor(&rest.Config{Host: server.URL, APIPath: "/api", ContentConfig: rest.ContentConfig{
		GroupVersion: &corev1.SchemeGroupVersion, NegotiatedSerializer: serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()}})
	if err != nil {
		t.Fatal(err)
	}
	return apiServer
}

// wrong returns the questions without a good answer, and the output.
func (c checked) wrong(t *testing.T) ([]string, string) {
	t.Helper()
	var out strings.Builder
	_ = put(t.Context(), &out, 0, c.examine(t).questions())
	var wrong []string
	for line := range strings.Lines(out.String()) {
		if about, is := strings.CutPrefix(line, "wrong  "); is {
			name, _, _ := strings.Cut(about, ":")
			wrong = append(wrong, name)
		}
	}
	return wrong, out.String()
}

// TestCheck asks Stayput's own webhooks over TLS.
func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		checked
		wrong []string
		says  string
	}{
		"in order":                               {checked{}, nil, "the API server reaches it"},
		"expired":                                {checked{expired: true}, []string{"certificate", "webhooks"}, "expired"},
		"for another host":                       {checked{host: "other-"}, []string{"certificate", "webhooks"}, "not " + ownHost},
		"of another CA":                          {checked{otherCA: true}, []string{"certificate", "webhooks"}, "unknown authority"},
		"no CA injected":                         {checked{noBundle: true}, []string{"certificate", "webhooks"}, "cainjector"},
		"a path not served":                      {checked{path: "-2"}, []string{"webhooks", "webhook port"}, "404"},
		"no leader":                              {checked{age: time.Minute}, []string{"leader"}, "renewed its Lease"},
		"API servers only":                       {checked{clientAuth: tls.RequireAnyClientCert}, nil, "--client-ca"},
		"a firewall":                             {checked{firewall: true}, []string{"webhook port"}, "i/o timeout"},
		"a webhook for Ready":                    {checked{readyAt: "/mutate-pod-status"}, nil, "managers are asked instead"},
		"a webhook for Ready that is not served": {checked{readyAt: "/mutate-pod-status-2"}, []string{"webhooks"}, "404"},
		"nothing for Ready":                      {checked{late: true}, []string{"mutating policies"}, "a second or two late"},
		"a policy without binding":               {checked{unbound: ownPolicies[1]}, []string{"policies"}, ownPolicies[1]},
		"the advice without binding":             {checked{unbound: ownAdvice}, []string{"policies"}, ownAdvice},
		"a policy only warns":                    {checked{weakened: ownPolicies[1]}, []string{"policies"}, ownPolicies[1]},
		"a policy is missing":                    {checked{noPolicy: ownPolicies[2]}, []string{"policies"}, ownPolicies[2]},
	} {
		t.Run(name, func(t *testing.T) {
			wrong, said := test.checked.wrong(t)
			if !slices.Equal(wrong, test.wrong) || !strings.Contains(said, test.says) {
				t.Errorf("wrong are %q, want %q; and it must say %q:\n%s", wrong, test.wrong, test.says, said)
			}
		})
	}
}
