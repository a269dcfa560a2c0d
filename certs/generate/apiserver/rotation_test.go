//go:build e2e

// Package apiserver tests certificates that managers make, with a kube-apiserver that calls them: make test-certificates.
package apiserver

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/certs"
	"github.com/stayput/stayput/certs/generate"
)

const (
	own = "stayput-system"
	// lifetime makes a rotation every 16 s, and lets a new CA sign after 2.7 s.
	lifetime = 24 * time.Second
)

// TestNoCallFailsWhileCAsAreReplaced has a kube-apiserver call two managers that make their certificates, with the rights of the chart.
// Each call is a TLS handshake. CAs end, a manager starts anew, and the Secret is emptied.
func TestNoCallFailsWhileCAsAreReplaced(t *testing.T) {
	log.SetLogger(zap.New(zap.WriteTo(t.Output())))
	a := startAPIServer(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: generate.Secret}}
	a.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: own}}, secret)
	a.allow(t)
	a.register(t)
	a.start(t.Context(), t, "one")
	ctx, end := context.WithCancel(t.Context())
	a.start(ctx, t, "other")
	a.eventually(t, "the managers are called", func() error { return a.ask(t.Context()) })

	a.asks(t, "while four CAs are replaced", 70*time.Second)
	a.leave(t, "other", end)
	a.start(t.Context(), t, "another")
	a.asks(t, "while a manager starts", 20*time.Second)
	if err := a.admin.Patch(t.Context(), secret, client.RawPatch(types.MergePatchType, []byte(`{"data":null}`))); err != nil {
		t.Fatal(err)
	}
	a.asks(t, "after the Secret was emptied", 20*time.Second)
}

// apiServer is a kube-apiserver without any other component.
type apiServer struct {
	admin    client.Client
	managers *rest.Config
	scheme   *runtime.Scheme
	address  string
}

func startAPIServer(t *testing.T) apiServer {
	t.Helper()
	environment := &envtest.Environment{ControlPlaneStartTimeout: 2 * time.Minute, ControlPlaneStopTimeout: time.Minute}
	// It calls what EndpointSlices name: there is no kube-proxy.
	environment.ControlPlane.GetAPIServer().Configure().Set("enable-aggregator-routing", "true")
	administrator, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	user, err := environment.AddUser(envtest.User{Name: "stayput"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := apiServer{managers: user.Config(), scheme: runtime.NewScheme(), address: ownAddress(t)}
	known := runtime.NewSchemeBuilder(corev1.AddToScheme, admissionv1.AddToScheme, rbacv1.AddToScheme, discoveryv1.AddToScheme)
	if err := known.AddToScheme(a.scheme); err != nil {
		t.Fatal(err)
	}
	if a.admin, err = client.New(administrator, client.Options{Scheme: a.scheme}); err != nil {
		t.Fatal(err)
	}
	return a
}

// ownAddress returns an address of this machine that an EndpointSlice may have: it may have no loopback address.
func ownAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil && prefix.Addr().Is4() && !prefix.Addr().IsLoopback() {
			return prefix.Addr().String()
		}
	}
	t.Fatal("this machine has no address but loopback")
	return ""
}

func (a apiServer) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := a.admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// allow gives the managers the rights of the chart, manifests/chart/files/templates/generated-certificates.yaml.
func (a apiServer) allow(t *testing.T) {
	t.Helper()
	const name = "stayput-certificates"
	of := func(group, resource string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names,
			Verbs: []string{"get", "list", "watch", "patch"}}
	}
	to := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "stayput"}}
	role := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	inside, outside := metav1.ObjectMeta{Name: name, Namespace: own}, metav1.ObjectMeta{Name: name}
	a.create(t,
		&rbacv1.Role{ObjectMeta: inside, Rules: []rbacv1.PolicyRule{of("", "secrets", generate.Secret)}},
		&rbacv1.RoleBinding{ObjectMeta: inside, Subjects: to, RoleRef: role("Role")},
		&rbacv1.ClusterRole{ObjectMeta: outside, Rules: []rbacv1.PolicyRule{
			of(admissionv1.GroupName, "mutatingwebhookconfigurations", "stayput"),
			of(admissionv1.GroupName, "validatingwebhookconfigurations", "stayput")}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: outside, Subjects: to, RoleRef: role("ClusterRole")},
	)
}

// register has the API server call managers when a ConfigMap is created. It refuses the ConfigMap if it cannot.
func (a apiServer) register(t *testing.T) {
	t.Helper()
	port := []corev1.ServicePort{{Name: "webhook", Port: 443}}
	called := admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: own, Name: "stayput-webhook"}}
	rules := []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create}, Rule: admissionv1.Rule{
		APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}}}}
	none, name := ptr.To(admissionv1.SideEffectClassNone), metav1.ObjectMeta{Name: "stayput"}
	a.create(t,
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "stayput-webhook"}, Spec: corev1.ServiceSpec{Ports: port}},
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: name, Webhooks: []admissionv1.MutatingWebhook{{
			Name: "a.stayput.dev", ClientConfig: called, Rules: rules, SideEffects: none, AdmissionReviewVersions: []string{"v1"}}}},
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: name, Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "a.stayput.dev", ClientConfig: called, Rules: rules, SideEffects: none, AdmissionReviewVersions: []string{"v1"}}}},
	)
}

// start starts a manager, and has the API server call it once it serves a certificate.
func (a apiServer) start(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	m, err := manager.New(a.managers, manager.Options{Scheme: a.scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)}})
	if err != nil {
		t.Fatal(err)
	}
	generator := generate.New(own, lifetime)
	if err := generator.AddTo(m); err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := m.Start(ctx); err != nil {
			t.Error(err)
		}
	}()
	a.eventually(t, name+" serves a certificate", func() error {
		_, err := generator.GetCertificate(nil)
		return err
	})
	a.create(t, &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: own, GenerateName: "manager-", Labels: map[string]string{
			discoveryv1.LabelServiceName: "stayput-webhook", "manager": name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{a.address}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("webhook"), Port: ptr.To(a.serve(t, generator))}},
	})
}

// serve answers webhooks, each call on a connection of its own, and returns the port.
func (a apiServer) serve(t *testing.T, generator *generate.Generator) int32 {
	t.Helper()
	shown := &tls.Config{}
	certs.TLS(generator)(shown)
	listener, err := tls.Listen("tcp", net.JoinHostPort(a.address, "0"), shown)
	if err != nil {
		t.Fatal(err)
	}
	allow := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") })
	server := &http.Server{Handler: &webhook.Admission{Handler: allow}, ReadHeaderTimeout: time.Minute}
	server.SetKeepAlivesEnabled(false)
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { _ = server.Close() })
	return int32(listener.Addr().(*net.TCPAddr).Port)
}

// leave has the API server no longer call a manager, and ends it. It still answers calls that come late, with its last certificate.
func (a apiServer) leave(t *testing.T, name string, end func()) {
	t.Helper()
	if err := a.admin.DeleteAllOf(t.Context(), &discoveryv1.EndpointSlice{}, client.InNamespace(own),
		client.MatchingLabels{"manager": name}); err != nil {
		t.Fatal(err)
	}
	end()
}

// ask has the API server call both webhooks.
func (a apiServer) ask(ctx context.Context) error {
	question := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: own, GenerateName: "question-"}}
	return a.admin.Create(ctx, question, client.DryRunAll)
}

// asks asks for so long, without a pause, and fails if one of the calls does.
func (a apiServer) asks(t *testing.T, when string, long time.Duration) {
	t.Helper()
	answered := 0
	for deadline := time.Now().Add(long); time.Now().Before(deadline); answered++ {
		if err := a.ask(t.Context()); err != nil {
			t.Fatalf("%s, after %d calls: %v", when, answered, err)
		}
	}
	t.Logf("%s: %d calls were answered", when, answered)
}

func (a apiServer) eventually(t *testing.T, what string, ask func() error) {
	t.Helper()
	err := ask()
	for deadline := time.Now().Add(time.Minute); err != nil; err = ask() {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute still not: %s: %v", what, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
